"""S1: replies as the templates of many makers have them, whole and in single characters."""

from __future__ import annotations

import pytest

from callformats import Reading, StreamReader, read

from .offer import TOOLS, calls, tool


def one_by_one(text: str) -> Reading:
    reader = StreamReader(TOOLS)
    for char in text:
        reader.feed(char)
    return reader.close()


SEARCHED = [("search", {"query": "x", "filters": {"a": 1}})]
OPEN_CALL = '{"name": "search", "arguments": {"query": "x", "filters": {"a": 1}'


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{OPEN_CALL}\n</tool_call>",
        f"<tool_call>\n{OPEN_CALL}}}</tool_call>",
        f"<tool_call>\n{OPEN_CALL}\n</tool_ca",
        f"```json\n{OPEN_CALL}\n```",
        f"```json\n{OPEN_CALL}}}\n```",
        f"[TOOL_CALLS][{OPEN_CALL}]",
        f"<tool_calls>[{OPEN_CALL}]</tool_calls>",
        '[TOOL_CALLS]search[ARGS]{"query": "x", "filters": {"a": 1}</s>',
        '<function=search>{"query": "x", "filters": {"a": 1}</function>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{"query": "x", "filters": {"a": 1}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{"query": "x", '
        '"filters": {"a": 1}<|tool_call_end|><|tool_calls_section_end|>',
    ],
)
def test_S1_closers_that_are_missing_before_the_blocks_own_closer_are_added(text: str) -> None:
    for reading in (read(text, TOOLS), one_by_one(text)):
        assert [(call.name, dict(call.arguments)) for call in reading.calls] == SEARCHED, reading
        assert reading.text == ""
        assert all(call.repaired for call in reading.calls)


@pytest.mark.parametrize("closer", ["\n</tool_call>", "}}\n</tool_call>", "</tool_call>"])
def test_S1_a_string_that_never_ends_is_not_ended_by_the_blocks_closer(closer: str) -> None:
    reading = read(f'<tool_call>\n{{"name": "search", "arguments": {{"query": "half of{closer}', TOOLS)
    assert reading.calls == ()
    assert reading.problem is not None


def test_S1_a_closer_of_an_outer_value_closes_the_inner_ones() -> None:
    assert calls('{"name": "search", "arguments": {"query": "x", "tags": ["a", "b"}}') == [
        ("search", {"query": "x", "tags": ["a", "b"]})
    ]


def test_S1_a_fence_between_the_markers_never_reaches_the_user() -> None:
    text = '<tool_call>\n```json\n{"name": "search", "arguments": {"query": "x"}}\n```\n</tool_call>'
    for reading in (read(text, TOOLS), one_by_one(text)):
        assert [dict(call.arguments) for call in reading.calls] == [{"query": "x"}]
        assert (reading.text, reading.problem) == ("", None)


def test_S1_an_opener_in_place_of_the_closer_is_no_fault() -> None:
    reading = read('<tool_call>\n{"name": "search", "arguments": {"query": "x"}}\n<tool_call>', TOOLS)
    assert len(reading.calls) == 1
    assert reading.problem is None
    assert read("<tool_call>", TOOLS).problem is not None


@pytest.mark.parametrize(
    "text",
    [
        'Action: ```json\n[\n  {\n    "tool_name": "search",\n    "parameters": {"query": "x"}\n  }\n]```',
        '{"thought": "look it up", "tool_calls": [{"name": "search", "arguments": {"query": "x"}}]}',
        '<tool_calls>\n<tool_call>search\n```json\n{"query": "x"}\n```\n</tool_call>\n</tool_calls>',
        '<tool_calls><tool_call>function<tool_sep>search\n```json\n{"query": "x"}\n```</tool_call></tool_calls>',
        '<tool_calls>\n<tool_call>\n{"name": "search", "arguments": {"query": "x"}}\n</tool_call>\n</tool_calls>',
        '<|from|>assistant\n<|recipient|>search\n<|content|>{"query": "x"}<|stop|>',
        'search\n<|content|>{"query": "x"}<|stop|>',
        '```tool_code\nprint(default_api.search(query="x"))\n```',
        '```tool_code\nresult = search(query="x")\n```',
    ],
)
def test_S1_templates_of_makers_are_read_whole_and_in_single_characters(text: str) -> None:
    for reading in (read(text, TOOLS), one_by_one(text)):
        assert [(call.name, dict(call.arguments)) for call in reading.calls] == [("search", {"query": "x"})], reading
        assert (reading.text, reading.problem) == ("", None)


@pytest.mark.parametrize(
    "text",
    [
        '>>>all\nI look it up.>>>search\n{"query": "x"}',
        "<|from|>assistant\n<|recipient|>all\n<|content|>I look it up.<|from|>assistant\n<|recipient|>search\n"
        '<|content|>{"query": "x"}<|stop|>',
    ],
)
def test_S1_functionary_speaks_to_everyone_and_calls_in_one_reply(text: str) -> None:
    for reading in (read(text, TOOLS), one_by_one(text)):
        assert [(call.name, dict(call.arguments)) for call in reading.calls] == [("search", {"query": "x"})], reading
        assert reading.text == "I look it up."


def test_S1_doctests_stay_text_when_nobody_is_addressed() -> None:
    text = "Try it:\n>>> 1 + 1\n2\nor a >>>b"
    assert read(text, TOOLS).text == one_by_one(text).text == text


def test_S1_flat_fields_named_id_or_type_count_where_the_tool_has_them() -> None:
    user = tool("get_user", ("id",), id="string", type="string")
    assert calls('<tool_call>{"name": "get_user", "id": "42"}</tool_call>', [user]) == [("get_user", {"id": "42"})]
    assert calls('{"name": "get_user", "id": "42", "arguments": {}}', [user]) == [("get_user", {"id": "42"})]
    assert calls('<tool_call>{"name": "ping", "id": "call_1", "type": "function"}</tool_call>') == [("ping", {})]
    written = '{"type": "function", "name": "get_user", "parameters": {"id": "7"}}'
    assert calls(written, [user]) == [("get_user", {"id": "7"})]


@pytest.mark.parametrize(
    "text",
    [
        "```\n f>",
        "```\n f",
        '<function=search>{"query" "x": ""y"}</function>',
        '>\n{name:"{"name:"etweather"',
        "```tool_code\ne=search(",
        ">>>all\ne>>>search\n{",
        '{"serch": {"query": "x"}}',
        '{"serch",s:{',
        "<tool_call>r<arg_key></arg_key></tool_call></arg_value>",
        "<tool_call>search<arg_key>query</arg_key><arg_value>a</tool_call>b</arg_value></tool_call>",
        "<function=)\n```" + '[TOOL_CALLS]search[ARGS]{"query": "a rather long question"} ' * 6 + "</tool_call>",
    ],
)
def test_S1_odd_replies_read_the_same_in_single_characters(text: str) -> None:
    assert read(text, TOOLS) == one_by_one(text)


def test_S1_code_keeps_its_indent_in_a_fence() -> None:
    assert read("```\n  a", TOOLS).text == one_by_one("```\n  a").text == "```\n  a"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_', ""),
        ('<tool_call>{"name": "search", "arguments": {"query": "x"}}\n</', ""),
        ('I look.\n[TOOL_CALLS]search[ARGS]{"query": "x"}[TOOL_C', "I look."),
        ('<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>\n3 <', "3 <"),
        # Nothing says that this was to be a call.
        ("3 <", "3 <"),
        ("See <tool_c", "See <tool_c"),
    ],
)
def test_S1_a_marker_that_is_cut_off_behind_a_call_never_reaches_the_user(text: str, shown: str) -> None:
    assert read(text, TOOLS).text == one_by_one(text).text == shown
