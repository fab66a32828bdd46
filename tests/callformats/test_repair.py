"""S1: what of broken JSON is mended, what is refused, and that nothing cut off is ever completed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callformats import Fault, read
from callformats.loose_json import State, parse, read_json
from runner.conversation.request import ToolSpec
from runner.host.events import Json

from .material import SEARCH, TOOLS, calls, faults

# S1: what is mended, what is refused, and that nothing cut off is ever completed.


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"',
        '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"}',
        '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"}}',
        '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"}}}}</tool_call>',
        '<tool_call>{"name": "write_file", "arguments": {"path": "a" "content": "b",}}</tool_call>',
        '<tool_call>{"name="write_file","arguments>{"path": "a", "content": "b"}}',
        '{"name": "write_file", "arguments": {"path": "a", "content": "b"}',
        "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nb\n</parameter>\n",
    ],
)
def test_S1_missing_closers_are_added_when_every_string_is_closed(text: str) -> None:
    assert calls(text) == [("write_file", {"path": "a", "content": "b"})]


CUT = [
    '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "half of it',
    '{"name": "write_file", "arguments": {"path": "a", "content": "half of it',
    '```json\n{"name": "write_file", "arguments": {"path": "a", "content": "half of it',
    "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\nhalf of it",
    "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>ha",
    "<|tool_call_start|>[write_file(path='a', content='half of it",
    '<|tool_call>call:write_file{path:<|"|>a<|"|>,content:<|"|>half of it',
    '[TOOL_CALLS]write_file[ARGS]{"path": "a", "content": "half of it',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_file<｜tool▁sep｜>{"path": "a", "content": "half of it',
    '<|channel|>commentary to=functions.write_file<|message|>{"path": "a", "content": "half of it',
    '<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{"path": "a", "content": "half of it',
    '<invoke name="write_file">\n<parameter name="path">a</parameter>\n<parameter name="content">half of it',
    'Action: write_file\nAction Input: {"path": "a", "content": "half of it',
]


@pytest.mark.parametrize("text", CUT)
@pytest.mark.parametrize("tools", [TOOLS, [ToolSpec("write_file", "", {})]], ids=["schema", "anything goes"])
def test_S1_a_string_cut_off_midway_is_never_completed(text: str, tools: list[ToolSpec]) -> None:
    reading = read(text, tools)
    assert reading.calls == ()
    assert faults(reading) == [Fault.CUT_OFF]
    assert reading.refusals[0].name == "write_file"
    assert reading.problem == "the call to 'write_file' stops in the middle"
    assert reading.text == ""


@pytest.mark.parametrize("text", CUT)
def test_S1_no_beginning_of_a_cut_call_ever_runs_with_half_a_string(text: str) -> None:
    for end in range(len(text)):
        for call in read(text[:end], TOOLS).calls:
            assert call.arguments.get("content") is None or call.arguments["content"] == ""


def test_S1_a_number_at_the_very_end_may_be_cut_too() -> None:
    assert faults(read('<tool_call>{"name": "search", "arguments": {"query": "x", "limit": 1', TOOLS)) == [
        Fault.CUT_OFF
    ]


def test_S1_a_repaired_call_runs_only_when_the_schema_accepts_it() -> None:
    fits = '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "b"'
    assert read(fits, TOOLS).calls[0].repaired
    for arguments in ('{"path": "a"', '{"path": "a", "content": 3', '{"path": "a", "content": "b", "append": "yes"'):
        reading = read(f'<tool_call>{{"name": "write_file", "arguments": {arguments}', TOOLS)
        assert reading.calls == ()
        assert reading.problem is not None


def test_S1_a_clean_call_is_not_judged_by_the_schema_here() -> None:
    reading = read('<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>', TOOLS)
    assert [call.repaired for call in reading.calls] == [False]


@pytest.mark.parametrize(
    "body", ["not json", "{]", '{"name": "ping", "arguments": "no object"}', '{"name": "ping", x y}']
)
def test_S1_markup_that_makes_no_sense_is_refused_and_hidden(body: str) -> None:
    reading = read(f"Before.\n<tool_call>{body}</tool_call>\nAfter.", TOOLS)
    assert reading.calls == ()
    assert reading.problem is not None
    assert reading.text == "Before.\n\nAfter."


def test_S1_one_broken_call_does_not_take_its_siblings_along() -> None:
    good = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    reading = read(f"{good}\n<tool_call>nonsense here</tool_call>\n{good}", TOOLS)
    assert [call.name for call in reading.calls] == ["ping", "ping"]
    assert faults(reading) == [Fault.UNREADABLE]


def test_S1_the_tools_own_description_is_no_call() -> None:
    echo = {"name": "search", "description": "Finds.", "parameters": dict(SEARCH.parameters)}
    reading = read(json.dumps(echo), TOOLS)
    assert faults(reading) == [Fault.SCHEMA_ECHO]
    assert reading.text == ""


TWICE = {
    # format id: `search(query="x")` with the query given once more as "y"
    "hermes": '<tool_call>{"name": "search", "arguments": {"query": "x", "query": "y"}}</tool_call>',
    "json": '{"name": "search", "arguments": {"query": "x", "query": "y"}}',
    "arguments as text": '{"name": "search", "arguments": "{\\"query\\": \\"x\\", \\"query\\": \\"y\\"}"}',
    "flat": '{"name": "search", "query": "x", "query": "y"}',
    "cut": '<tool_call>{"name": "search", "arguments": {"query": "x", "query": "y"}',
    "json-fence": '```json\n{"name": "search", "arguments": {"query": "x", "query": "y"}}\n```',
    "pythonic": '[search(query="x", query="y")]',
    "lfm2": "<|tool_call_start|>[search(query='x', query='y')]<|tool_call_end|>",
    "react": 'Action: search\nAction Input: {"query": "x", "query": "y"}\n',
    "functionary": '>>>search\n{"query": "x", "query": "y"}',
    "qwen3-xml": "<tool_call>\n<function=search>\n<parameter=query>\nx\n</parameter>\n<parameter=query>\n"
    "y\n</parameter>\n</function>\n</tool_call>",
    "minimax-m2": '<invoke name="search"><parameter name="query">x</parameter><parameter name="query">y</parameter>'
    "</invoke>",
    "glm45": "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n<arg_key>query</arg_key>\n"
    "<arg_value>y</arg_value>\n</tool_call>",
    "glm in one line": '<tool_call>search query="x" query="y"</tool_call>',
    "gemma4": '<|tool_call>call:search{query:<|"|>x<|"|>,query:<|"|>y<|"|>}<tool_call|>',
    "mistral": '[TOOL_CALLS]search[ARGS]{"query": "x", "query": "y"}',
    "kimi-k2": '<|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{"query": "x", "query": "y"}'
    "<|tool_call_end|>",
    "kimi-k3": '<|open|>tools<|sep|><|open|>call tool="search" index="1"<|sep|>'
    '<|open|>argument key="query" type="string"<|sep|>x<|close|>argument<|sep|>'
    '<|open|>argument key="query" type="string"<|sep|>y<|close|>argument<|sep|><|close|>call<|sep|>'
    "<|close|>tools<|sep|>",
    "minimax-m3": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="search">]<]minimax[>[<query>x'
    "]<]minimax[>[</query>]<]minimax[>[<query>y]<]minimax[>[</query>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
    "deepseek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{"query": "x", "query": "y"}'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "harmony": '<|channel|>commentary to=functions.search<|message|>{"query": "x", "query": "y"}<|call|>',
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE.keys())
def test_Sl_one_key_with_two_values_is_refused_and_the_key_is_told(text: str) -> None:
    reading = read(text, TOOLS)
    assert reading.calls == ()
    assert reading.problem == "the call to 'search' gives \"query\" twice with different values"
    assert reading.text == ""
    # The same value twice has one reading.
    again = re.sub(r"\by\b", "x", text)
    assert calls(again) == [("search", {"query": "x"})]


@pytest.mark.parametrize("first", ["0", "null", "false", '""', '{"b": 1}', "[]"])
def test_Sl_a_first_value_that_says_little_is_a_value_too(first: str) -> None:
    text = (
        f'<tool_call>{{"name": "search", "arguments": {{"query": "x", "filters": {first}, "filters": 5}}}}</tool_call>'
    )
    assert faults(read(text, TOOLS)) == [Fault.DOUBLED]


def test_Sl_an_empty_object_is_replaced_by_what_is_written_behind_it() -> None:
    assert calls('{"name": "search", "arguments": {}, "arguments": {"query": "x"}}') == [("search", {"query": "x"})]


def test_Sl_a_doubled_key_deep_inside_an_argument_is_refused_too() -> None:
    deep = '{"name": "search", "arguments": {"query": "x", "filters": {"a": 1, "a": 2}}}'
    assert faults(read(f"<tool_call>{deep}</tool_call>", TOOLS)) == [Fault.DOUBLED]


# S1: the reader of values.

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_S1_clean_json_is_read_as_json_and_needs_no_repair(value: Json) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        parsed = read_json(text)
        if '"' not in text or "\\ud" not in text:
            assert parsed.value == json.loads(text)
        assert parsed.state is State.WHOLE
        assert not parsed.mended


@given(json_values.filter(lambda value: isinstance(value, dict | list)), st.integers(0, 400))
def test_S1_json_cut_anywhere_never_yields_a_string_that_was_not_finished(value: Json, cut: int) -> None:
    text = json.dumps(value)
    parsed = parse(text[: cut % len(text)])
    if parsed.state is State.OPEN:
        assert _strings(parsed.value) <= _strings(value)


def _strings(value: Json) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    if isinstance(value, dict):
        return set(value).union(*map(_strings, value.values()))
    return set()


@given(st.text(alphabet="{}[]()\"'`:=,<>\\nametrufls0123456789.eE+-/* \n", max_size=80))
def test_S1_any_text_is_read_without_a_crash(text: str) -> None:
    parsed = parse(text)
    assert 0 <= parsed.end <= len(text)
    read(text, TOOLS)


_WORDS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "(",
    ")",
    "a",
    "'a'",
    '"a"',
    '"b"',
    "true",
    "True",
    "None",
    "null",
    "1",
    "01",
    ".5",
    "1_0",
    "+1",
    "1e5",
    '"\\u0041"',
    '"\\x41"',
    '"\\\'"',
    "/**/",
]
_PIECES = st.lists(st.sampled_from([*_WORDS, " ", '"\n"', "// x\n"]), max_size=12)


def strict(text: str) -> Json:
    def once(pairs: list[tuple[str, Json]]) -> Json:
        read = dict(pairs)
        assert all(read[name] == value for name, value in pairs)
        return read

    value: Json = json.loads(text, object_pairs_hook=once)
    return value


@given(json_values)
def test_J3_clean_json_is_exact(value: Json) -> None:
    assert read_json(json.dumps(value)).exact
    assert read_json(json.dumps(value, ensure_ascii=False, indent=2)).exact


@given(_PIECES.map("".join))
@example('{"a": true,}')
@example("[1,]")
@example("{'a': 1}")
@example('{"a": True}')
@example("{a: 1}")
@example('{"a": 1, , "b": 2}')
@example('{"a": "\n"}')
@example('{"a": 1, "a": 2}')
@example('{"a": 1, "a": 1}')
@example('{"a": {}, "a": 2}')
def test_J3_what_is_called_exact_is_json_to_the_letter(text: str) -> None:
    parsed = read_json(text)
    if parsed.exact:
        assert parsed.state is State.WHOLE
        assert strict(text) == parsed.value
