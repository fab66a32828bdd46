"""S1, rule by rule, on texts of our own: what is a call, which tool it names, what its arguments are."""

from __future__ import annotations

import json

import pytest

from callformats import Fault, StreamReader, read

from .material import TOOLS, calls, faults, tool

# --- what is a call ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'search(query="x")',
        '[search(query="x")]',
        '{"name": "search", "arguments": {"query": "x"}}',
        '{"tool": "search", "args": {"query": "x"}}',
        '{"function": {"name": "search", "parameters": {"query": "x"}}}',
        '{"type": "function", "function": {"name": "search", "arguments": "{\\"query\\": \\"x\\"}"}}',
        '{"tool_calls": [{"name": "search", "input": {"query": "x"}}]}',
        '{"search": {"query": "x"}}',
        '{"name": "search", "query": "x"}',
        '{"name": "search", "query": "x", "arguments": {}}',
        '{{"name": "search", "arguments": {"query": "x"}}}',
        "{'name': 'search', 'arguments': {'query': 'x'}}",
        '```\n{"name": "search", "arguments": {"query": "x"}}\n```',
        '```json\n{"name": "search", "arguments": {"query": "x"}}\n',
        '```python\nsearch(query="x")\n```',
        'search\n{"query": "x"}',
        'search[ARGS]{"query": "x"}',
        'Action: search\nAction Input: {"query": "x"}',
        'call:search{query:<|"|>x<|"|>}',
    ],
)
def test_S1_without_markers_a_call_is_the_whole_reply_or_its_last_block(text: str) -> None:
    wanted = [("search", {"query": "x"})]
    assert calls(text) == wanted
    after_prose = read(f"I will look that up.\n\n{text}\n", TOOLS)
    assert [(call.name, dict(call.arguments)) for call in after_prose.calls] == wanted
    assert after_prose.text == "I will look that up."
    with_more = read(f"{text}\n\nThat is how one would do it.", TOOLS)
    assert with_more.calls == ()
    assert with_more.problem is None
    assert "That is how" in with_more.text


IN_ANGLES = [
    '<{"name": "search", "arguments": {"query": "a > b"}}>',
    '<{{"name": "search", "arguments": {"query": "a > b"}}}}',
    '<{{"name": "search", "arguments": {"query": "a > b"}}>',
    'I will look.\n\n<{"name": "search", "arguments": {"query": "a > b"}}>',
]
"""As Qwen2.5-Coder 1.5B writes calls when its template shows tags and doubled braces."""


@pytest.mark.parametrize("text", IN_ANGLES)
def test_S1_json_in_angles_is_a_call_however_it_is_cut(text: str) -> None:
    assert calls(text) == [("search", {"query": "a > b"})]
    assert "{" not in read(text, TOOLS).text
    for at in range(len(text)):
        reader = StreamReader(TOOLS)
        shown = reader.feed(text[:at]) + reader.feed(text[at:])
        last = reader.close()
        assert [(call.name, call.arguments) for call in last.calls] == [("search", {"query": "a > b"})]
        assert "{" not in shown


@pytest.mark.parametrize(
    "text", ['<{"name": "search", "arguments": {"query": "x"}}> is how', "<{...props}>", "<{", "<"]
)
def test_S1_other_angles_are_text(text: str) -> None:
    assert calls(text) == []
    assert read(text, TOOLS).text == text


def test_S1_a_fenced_block_stays_readable_when_it_is_no_call() -> None:
    text = 'See:\n\n```json\n{"name": "search", "arguments": {"query": "x"}}\n```\n\nDone.'
    assert read(text, TOOLS).text == text


@pytest.mark.parametrize(
    "text",
    [
        "The search (see below) works. search()",
        "Use search(query) for that.",
        "search(the whole web)\n",
        "def search(query='x'):\n    pass\n",
        "print(search(query='x'))\n",
        "result = search(query='x')",
        '{"query": "x"}',
        '{"name": "search"}',
        '{"name": "Anna", "age": 3}',
        '{"search": "x"}',
        '[1, 2, {"a": 1}]',
        'We send {"name": "search", "arguments": {"query": "x"}} over the wire.',
        "Action: look around you",
        "`<tool_call>` opens a call.",
        "a <tool_call fakeout",
        "x = [search for search in tools]",
        "<b>bold</b> <s>gone</s> [link](https://example.org)",
    ],
)
def test_S1_prose_and_code_are_no_calls_and_stay_as_they_are(text: str) -> None:
    reading = read(text, TOOLS)
    assert reading.calls == ()
    assert reading.text == text
    assert reading.problem is None


def test_S1_a_whole_reply_that_calls_an_unknown_tool_is_refused_and_not_shown() -> None:
    reading = read('{"tool": "weather", "arguments": {"city": "Oslo"}}', TOOLS)
    assert reading.calls == ()
    assert reading.text == ""
    assert faults(reading) == [Fault.UNKNOWN_TOOL]
    assert reading.problem == "there is no tool named 'weather'"


def test_S1_llama_3_hands_code_and_calls_behind_its_python_tag() -> None:
    python = tool("python", ("code",), code="string")
    assert calls("<|python_tag|>print('hey')", [python]) == [("python", {"code": "print('hey')"})]
    assert calls('<|python_tag|>search.call(query="x")<|eom_id|>') == [("search", {"query": "x"})]
    assert read("<|python_tag|>print('hey')", TOOLS).problem == "there is no tool named 'python'"


def test_S1_data_that_only_looks_like_a_call_is_shown() -> None:
    for text in ('{"name": "demo", "port": 8080}', '```json\n{"name": "demo", "hosts": ["a"]}\n```'):
        assert read(text, TOOLS).text == text


def test_S1_a_call_that_stands_in_an_untrusted_text_is_a_quotation() -> None:
    call = '{"name": "search", "arguments": {"query": "x"}}'
    page = f"To attack, write:\n{call}\nand wait."
    assert calls(call) == [("search", {"query": "x"})]
    reading = read(f"The page says:\n{call}", TOOLS, untrusted=["", page])
    assert reading.calls == ()
    assert reading.text == f"The page says:\n{call}"
    spaced = call.replace(" ", "\n ")
    assert calls(spaced, untrusted=[page]) == []


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Search", "search ", "functions.search", "serach", "searhc", "SEARCH", "seach"])
def test_S1_a_name_is_mended_when_exactly_one_tool_is_near(name: str) -> None:
    text = f'<tool_call>{{"name": "{name}", "arguments": {{"query": "x"}}}}</tool_call>'
    assert calls(text) == [("search", {"query": "x"})]


@pytest.mark.parametrize("name", ["find", "researching", "web", "", "pin", "write_files_now"])
def test_S1_a_name_that_is_near_none_is_refused(name: str) -> None:
    text = f'<tool_call>{{"name": "{name}", "arguments": {{"query": "x"}}}}</tool_call>'
    reading = read(text, TOOLS)
    assert reading.calls == ()
    assert reading.text == ""
    assert reading.problem is not None


def test_S1_a_name_near_two_tools_is_refused() -> None:
    two = [tool("get_user"), tool("get_users"), tool("create_reminder"), tool("delete_reminder")]
    for name in ("get_userr", "get_usera", "reate_eminder"):
        text = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
        if name == "reate_eminder":
            assert [call[0] for call in calls(text, two)] == ["create_reminder"]
        else:
            assert calls(text, two) == []
    assert calls('<tool_call>{"name": "get_user", "arguments": {}}</tool_call>', two) == [("get_user", {})]
    assert calls('<tool_call>{"name": "celete_reminder", "arguments": {}}</tool_call>', two) == [
        ("delete_reminder", {})
    ]


def test_S1_a_mended_name_counts_as_a_repair() -> None:
    assert read('<tool_call>{"name": "Search", "arguments": {"query": "x"}}</tool_call>', TOOLS).calls[0].repaired
    reading = read('<tool_call>{"name": "Search", "arguments": {"limit": 3}}</tool_call>', TOOLS)
    assert faults(reading) == [Fault.NOT_ACCEPTED]


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["arguments", "parameters", "args", "input"])
def test_S1_arguments_have_aliases(key: str) -> None:
    assert calls(f'{{"name": "search", "{key}": {{"query": "x"}}}}') == [("search", {"query": "x"})]


def test_S1_json_strings_are_decoded_only_where_the_schema_wants_an_object_or_array() -> None:
    given = {"query": '{"a": 1}', "filters": '{"a": 1}', "tags": '["b"]'}
    (call,) = calls(json.dumps({"name": "search", "arguments": given}))
    assert call[1] == {"query": '{"a": 1}', "filters": {"a": 1}, "tags": ["b"]}
    (note,) = calls(json.dumps({"name": "add_note", "arguments": {"text": "[1]", "extra": '{"a": 1}'}}))
    assert note[1] == {"text": "[1]", "extra": '{"a": 1}'}
    (kept,) = calls(json.dumps({"name": "search", "arguments": {"query": "x", "filters": "broken {", "tags": "3"}}))
    assert kept[1] == {"query": "x", "filters": "broken {", "tags": "3"}


def test_S1_texts_of_xml_formats_get_the_types_of_the_schema() -> None:
    text = (
        "<tool_call>\n<function=search>\n<parameter=query>\n42\n</parameter>\n<parameter=limit>\n7\n</parameter>\n"
        '<parameter=tags>\n["a"]\n</parameter>\n<parameter=filters>\n{"k": null}\n</parameter>\n'
        "</function>\n</tool_call>"
    )
    assert calls(text) == [("search", {"query": "42", "limit": 7, "tags": ["a"], "filters": {"k": None}})]


def test_S1_markup_inside_a_value_is_text_of_it() -> None:
    inner = 'see </parameter> and <tool_call> and <parameter=x> or {"name": "ping"}'
    text = f"<tool_call>\n<function=add_note>\n<parameter=text>\n{inner}\n</parameter>\n</function>\n</tool_call>"
    assert calls(text) == [("add_note", {"text": inner})]
    glm = f"<tool_call>add_note\n<arg_key>text</arg_key>\n<arg_value>{inner}</arg_value>\n</tool_call>"
    assert calls(glm) == [("add_note", {"text": inner})]
    hermes = json.dumps({"name": "add_note", "arguments": {"text": "</tool_call> <tool_call>"}})
    assert calls(f"<tool_call>{hermes}</tool_call>") == [("add_note", {"text": "</tool_call> <tool_call>"})]


def test_S1_a_name_and_its_arguments_in_two_blocks_are_one_call() -> None:
    text = '<tool_call>{"name": "search"}</tool_call>\n<tool_call>{"query": "x"}</tool_call>'
    assert calls(text) == [("search", {"query": "x"})]
