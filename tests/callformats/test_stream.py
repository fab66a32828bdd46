"""S1 on streams: how a reply is cut never matters, and text is not held back without need."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callformats import Reading, StreamReader, read
from callformats.tokens import tokens
from runner.conversation.request import ToolSpec
from runner.host.events import Json
from tests.callformats.material import FOLDER, Case, cases

CITY: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOLS = (
    ToolSpec("get_weather", "", CITY),
    ToolSpec("search", "", {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}),
    ToolSpec("ping", "", {"type": "object", "properties": {}}),
)

PIECES = [
    *sorted({*tokens().openers, *tokens().thoughts, *tokens().thought_closers, *tokens().noise, *tokens().results}),
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    '{"name": "search", "arguments": {"query": "a',
    '[{"name": "ping", "arguments": {}}]',
    "get_weather(city='Oslo')",
    "[ping()]",
    "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
    '<invoke name="ping">\n</invoke>',
    "ping<arg_key>a</arg_key><arg_value>1</arg_value>",
    'call:search{query:<|"|>x<|"|>}',
    "get_weather",
    "function<｜tool▁sep｜>ping\n```json\n{}\n```",
    "Action: ping\nAction Input: {}\n",
    "Observation: it rains",
    "```json\n",
    "```\n",
    "```python\n",
    ">>>ping\n{}",
    " to=user<|message|>",
    "Here is my thought process:",
    "Text.",
    " ",
    "\n",
    "`",
    '"',
    "{",
    "}",
    "[",
    "<",
    "ge",
    "Don't say </think>, say `</think>`.",
]
replies = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=9).map("".join)
options = st.fixed_dictionaries({"thinking": st.sampled_from([None, True, False]), "keep_thoughts": st.booleans()})


def chunked(text: str, cuts: list[int]) -> list[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


def streamed(chunks: list[str], **how: object) -> tuple[Reading, str, StreamReader]:
    reader = StreamReader(TOOLS, **how)  # type: ignore[arg-type]
    shown = ""
    for chunk in chunks:
        retracted = reader.retracted
        new = reader.feed(chunk)
        shown = reader.text if reader.retracted and not retracted else shown + new
    retracted = reader.retracted
    reading = reader.close()
    return reading, reading.text if reader.retracted and not retracted else shown, reader


@settings(max_examples=600)
@given(replies, st.lists(st.integers(0, 10_000), max_size=12), options)
def test_S1_any_way_of_cutting_a_reply_gives_the_same_reading(
    text: str, cuts: list[int], how: dict[str, object]
) -> None:
    whole = read(text, TOOLS, **how)  # type: ignore[arg-type]
    reading, shown, _ = streamed(chunked(text, cuts), **how)
    assert reading == whole
    assert reading.text.startswith(shown)


@settings(max_examples=200)
@given(replies, options)
def test_S1_a_reply_that_comes_in_single_characters_reads_the_same(text: str, how: dict[str, object]) -> None:
    reading, shown, _ = streamed(list(text), **how)
    assert reading == read(text, TOOLS, **how)  # type: ignore[arg-type]
    assert reading.text.startswith(shown)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_S1_a_public_case_reads_the_same_in_any_chunks(case: Case) -> None:
    whole = case.read()
    for size in (1, 3, 16):
        assert case.read([case.raw[start : start + size] for start in range(0, len(case.raw), size)]) == whole
    given_chunks = json.loads(_line(case.id)).get("chunks")
    if given_chunks and "".join(given_chunks) == case.raw:
        assert case.read(given_chunks) == whole


def _line(case_id: str) -> str:
    return _LINES[case_id]


_LINES = {
    json.loads(line)["id"]: line
    for path in sorted(FOLDER.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
}


def _written_by_small_models() -> list[tuple[str, tuple[ToolSpec, ...]]]:
    """What small models wrote in the raw runs, with the tools that were on offer."""
    known = {
        one["function"]["name"]: ToolSpec(one["function"]["name"], "", one["function"]["parameters"])
        for one in json.loads((FOLDER / "small_model_tools.json").read_text(encoding="utf-8"))
    }
    found = []
    for name in ("small_model_runs.jsonl", "small_model_dumps.jsonl"):
        for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            found.append((one["raw"], tuple(known[tool] for tool in one["tools"] if tool in known)))
    return found


SMALL = _written_by_small_models()
cut_places = st.lists(st.integers(0, 10_000), min_size=1, max_size=12)


@settings(max_examples=3)
@given(cut_places)
def test_S1_every_public_case_reads_the_same_however_it_is_cut(cuts: list[int]) -> None:
    for case in cases():
        assert case.read(chunked(case.raw, cuts)) == case.read(), case.id


@settings(max_examples=2)
@given(cut_places)
def test_S1_every_reply_of_a_small_model_reads_the_same_however_it_is_cut(cuts: list[int]) -> None:
    assert len(SMALL) > 900
    for raw, tools in SMALL:
        reader = StreamReader(tools)
        for chunk in chunked(raw, cuts):
            reader.feed(chunk)
        assert reader.close() == read(raw, tools), raw
