"""S1, rule by rule, on texts of our own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.callformats import Fault, Reading, StreamReader, loads, read
from runner.callformats.loose_json import State, parse
from runner.conversation.request import ToolSpec
from runner.events import Json


def tool(name: str, required: tuple[str, ...] = (), **properties: str | list[str]) -> ToolSpec:
    members: dict[str, Json] = {key: {"type": value} for key, value in properties.items()}  # type: ignore[dict-item]
    return ToolSpec(name, "", {"type": "object", "properties": members, "required": list(required)})


WRITE = tool("write_file", ("path", "content"), path="string", content="string", append="boolean")
SEARCH = tool("search", ("query",), query="string", limit="integer", filters="object", tags="array")
NOTE = tool("add_note", ("text",), text="string", extra=["string", "object"])
PING = tool("ping")
TOOLS = [WRITE, SEARCH, NOTE, PING]


def calls(text: str, tools: list[ToolSpec] = TOOLS, **how: object) -> list[tuple[str, dict[str, Json]]]:
    return [(call.name, dict(call.arguments)) for call in read(text, tools, **how).calls]  # type: ignore[arg-type]


def faults(reading: Reading) -> list[Fault]:
    return [refusal.fault for refusal in reading.refusals]


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


# --- repair -----------------------------------------------------------------------------------------------------------


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


# --- thoughts, results, what the user sees ----------------------------------------------------------------------------


CALL = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'


def test_S1_a_call_inside_a_thought_runs_only_when_the_thought_stopped_there_and_it_validates() -> None:
    assert calls(f"<think>I should look.\n{CALL}") == [("search", {"query": "x"})]
    assert read(f"<think>I should look.\n{CALL}", TOOLS).thought == "I should look."
    for text in (
        f"<think>I could {CALL}</think>Done.",
        f"<think>I could {CALL} or not",
        '<think>Hm <tool_call>{"name": "search", "arguments": {"limit": 1}}</tool_call>',
        '<think>Hm <tool_call>{"name": "search", "arguments": {"query": "x',
        '<think>Hm\n{"name": "search", "arguments": {"query": "x"}}',
    ):
        reading = read(text, TOOLS)
        assert reading.calls == ()
        assert "tool_call" not in reading.text
    assert calls(f"I should look.\n{CALL}", thinking=True) == [("search", {"query": "x"})]


def test_S1_a_thought_does_not_end_at_a_closer_that_is_spoken_of() -> None:
    reading = read("<think>The tag `</think>` ends it, and '</think>' too.</think>Yes.", TOOLS)
    assert reading.text == "Yes."
    assert reading.thought == "The tag `</think>` ends it, and '</think>' too."


def test_S1_a_thought_whose_opener_stood_in_the_prompt_is_taken_back() -> None:
    reader = StreamReader(TOOLS)
    assert reader.feed("I wonder. ") == "I wonder."
    assert reader.retracted is False
    reader.feed("</think>Yes")
    assert bool(reader.retracted)
    assert reader.text == "Yes"
    assert reader.close() == Reading("Yes", "I wonder.")


def test_S1_a_made_up_result_is_a_fault_and_nothing_behind_it_counts() -> None:
    text = f"{CALL}\n<tool_response>\nIt rains.\n</tool_response>\nIt rains in Oslo. {CALL}"
    reading = read(text, TOOLS)
    assert [call.name for call in reading.calls] == ["search"]
    assert faults(reading) == [Fault.MADE_UP_RESULT]
    assert reading.text == ""
    alone = read('<tool_response>{"temperature": 3}</tool_response>', TOOLS)
    assert alone.problem == "the reply makes up the result of a tool"
    react = read('Action: search\nAction Input: {"query": "x"}\nObservation: it rains\nFinal Answer: rain', TOOLS)
    assert [call.name for call in react.calls] == ["search"]
    assert faults(react) == [Fault.MADE_UP_RESULT]
    assert react.text == ""


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "</s>", "</tool_call>"]
)
def test_S1_tokens_of_the_turn_never_reach_the_user(token: str) -> None:
    assert read(f"Hello.{token}", TOOLS).text == "Hello."
    assert calls(f'{{"name": "ping", "arguments": {{}}}}{token}') == [("ping", {})]


def test_S1_texts_around_a_call_do_not_run_together() -> None:
    assert read(f"Let me look.{CALL}Just a moment.", TOOLS).text == "Let me look.\n\nJust a moment."
    assert read(f"Let me look. {CALL} Just a moment.", TOOLS).text == "Let me look.  Just a moment."


def test_S1_a_fence_that_holds_only_a_call_goes_with_it() -> None:
    text = f"Here is how:\n\n```python\n{CALL}\n```\n"
    reading = read(text, TOOLS)
    assert [call.name for call in reading.calls] == ["search"]
    assert reading.text == "Here is how:"


def test_S1_a_fenced_example_of_foreign_markup_can_be_read() -> None:
    text = 'Hermes writes:\n\n```\n<tool_call>{"name": "their_tool", "arguments": {}}</tool_call>\n```\n\nThat is all.'
    reading = read(text, TOOLS)
    assert reading.text == text
    assert reading.problem is None


# --- holding back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        (["Hel", "lo, ", "wor"], ["Hel", "lo,", " wor"]),
        (["a <", "b"], ["a", " <b"]),
        (["a <tool", "box>"], ["a", " <toolbox>"]),
        (["x\nsea", "side"], ["x", "\nseaside"]),
        (["x\nsearch", "ing"], ["x", "\nsearching"]),
        (["{", '"temperature": 3', "}"], ["", '{"temperature": 3', "}"]),
        (["```py", "thon\n", "import os\n"], ["", "", "```python\nimport os"]),
        ([CALL, " After", " all"], ["", "After", " all"]),
        (["See </thi", "s"], ["See", " </this"]),
        (["[", "link](u)"], ["", "[link](u)"]),
    ],
)
def test_S1_visible_text_is_not_held_back_longer_than_needed(chunks: list[str], shown: list[str]) -> None:
    reader = StreamReader(TOOLS)
    assert [reader.feed(chunk) for chunk in chunks] == shown


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<[{`>|"), max_size=60))
def test_S1_text_without_any_marker_is_shown_character_by_character(text: str) -> None:
    reader = StreamReader([])
    shown = ""
    for char in text:
        shown += reader.feed(char)
        assert len(text[: len(shown)].rstrip()) >= 0
    assert text.startswith(shown)
    # Only white space, and words that begin "to=", "function", "Action:" or a thought's opening sentence, wait.
    assert len(text.rstrip()) - len(shown) <= 40
    assert reader.close().text == text


# --- the reader of values ---------------------------------------------------------------------------------------------


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
        parsed = loads(text)
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


# --- what strangers tried ---------------------------------------------------------------------------------------------


def one_by_one(text: str, tools: list[ToolSpec] = TOOLS) -> Reading:
    reader = StreamReader(tools)
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
