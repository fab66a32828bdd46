"""S1 on streams: how a reply is cut never matters, and a long one is read in linear time."""

from __future__ import annotations

import json
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callformats import Reading, StreamReader, read
from callformats.tokens import tokens
from runner.conversation.request import ToolSpec
from runner.host.events import Json
from tests.callformats.material import FOLDER, Case, cases

# S1 on streams: how a reply is cut never matters, and text is not held back without need.

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


# S1: long replies are read in linear time. Steps are counted (characters examined, function calls), never seconds.

LENGTH = 24_000
STEPS_PER_CHARACTER = 110
CALLS_GROWTH = 3  # twice the text; the retries of a held block come in steps

HEADS = {
    "nothing": "",
    "hermes": '<tool_call>{"name": "get_weather", "arguments": {"city": "',
    "qwen3": "<tool_call>\n<function=get_weather>\n<parameter=city>\n",
    "glm": "<tool_call>get_weather\n<arg_key>city</arg_key><arg_value>",
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>',
    "json": '{"name": "get_weather", "arguments": {"city": "',
    "pythonic": "get_weather(city='",
    "thought": "<think>",
}
UNITS = [
    "plain words and more. ",
    "line\n",
    "<tool_call>",
    '<tool_call>\n{"name": ',
    '{"name": "get_weather", ',
    "{\n",
    "[\n",
    '{"arguments": "\n',
    "</think>",
    "`</think>`",
    "</parameter>",
    "<parameter=city>x</parameter>",
    "<arg_key>a</arg_key>",
    '```json\n{"name": "ping"}\n',
    "get_weather(city='a')\n",
    "get_weather(city='",
    "Action: ping\nAction Input: {",
    "[TOOL_CALLS]ping[ARGS]{",
    "<tool_call|>",
    "<｜tool▁call▁begin｜>ping",
    "<|channel|>",
    "</tool_call>",
    '"</tool_call>',
    '<invoke name="ping">',
    "ping\n{",
    "functools[",
    "<tool_call>ping\n```json\n",
    "<tool_call>function<tool_sep>ping\n{",
    '<tool_call>{"name": "ping", "arguments": {</tool_call>',
    "<|recipient|>ping\n<|content|>{",
    "<|from|>assistant\n",
    ">>>all\nx>>>",
    "Action: ```json\n",
    "\n",
    " \t\r\n",
    "</s>",
    "<|start|>assistant",
    "[TOOL_CALLS][",
    "<function=ping><parameter=city>",
    "<function=ping><parameter=city>x<parameter=</function>",
    "<tool_call>{x</tool_call>",
    "ping\n",
    "call:ping\n",
    "ping\n{}\n",
    "`<tool_call>",
    "```\n<tool_call>ping</tool_call>\n",
    "<code>\n",
    "<||DSML||invoke ",
    " to=functions.ping<|channel|>commentary",
    "<think>",
    "<think>a</think>",
    "\u0301",
    "\\",
    '"',
]


def steps(text: str, size: int) -> int:
    reader = StreamReader(TOOLS)
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    reader.close()
    return reader.steps


COMBINATIONS = [("nothing", unit) for unit in UNITS] + [
    (name, unit) for index, name in enumerate(HEADS) for unit in UNITS[index % 2 :: 2] if name != "nothing"
]


@pytest.mark.parametrize(("name", "unit"), COMBINATIONS)
def test_S1_a_24_kB_reply_takes_a_bounded_number_of_steps_for_each_character(name: str, unit: str) -> None:
    head = HEADS[name]
    text = (head + unit * (LENGTH // len(unit) + 1))[:LENGTH]
    assert steps(text, 24) <= STEPS_PER_CHARACTER * LENGTH


def function_calls(text: str) -> int:
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        steps(text, 40)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_S1_twice_the_text_takes_twice_the_work(unit: str) -> None:
    short, long = ((unit * (length // len(unit) + 1))[:length] for length in (2_000, 4_000))
    assert function_calls(long) <= CALLS_GROWTH * function_calls(short) + 500
