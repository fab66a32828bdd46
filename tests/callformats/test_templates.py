"""S1: replies as the templates of many makers have them, and as models and servers bend them."""

from __future__ import annotations

import pytest

from callformats import Reading, StreamReader, all_formats, read, render
from tests.callformats.material import Written

from .material import CALL, TOOLS, calls, tool

# S1: replies as the templates of many makers have them, whole and in single characters.


def one_by_one(text: str) -> Reading:
    reader = StreamReader(TOOLS)
    for char in text:
        reader.feed(char)
    return reader.close()


FILTERED = [("search", {"query": "x", "filters": {"a": 1}})]
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
        assert [(call.name, dict(call.arguments)) for call in reading.calls] == FILTERED, reading
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


# Si, Sc, Sd: formats as models and servers bend them, calls that are echoed, and calls that are only explained.

SEARCHED = [("search", {"query": "x"})]


def dsml(before: str, after: str) -> str:
    """A call in DSML; `before` and `after` stand around the names of tags, `<` and `/` left out."""
    return (
        f'<{before}tool_calls>\n<{before}invoke name="search">\n'
        f'<{before}parameter name="query" string="true">x</{after}parameter>\n</{after}invoke>\n</{after}tool_calls>'
    )


BENT = {
    "recipient in the role's header": "<|start|>assistant to=functions.search<|channel|>commentary <|constrain|>json"
    '<|message|>{"query": "x"}<|call|>',
    "the header's beginning in the prompt": " to=functions.search<|channel|>commentary json<|message|>"
    '{"query": "x"}<|call|>',
    "the channel behind the name": "<|channel|>commentary to=functions.search<|channel|>commentary<|message|>"
    '{"query": "x"}<|call|>',
    "no namespace": 'to=search<|channel|>commentary<|message|>{"query": "x"}',
    "the channel's token left out": 'commentary to=functions.search <|constrain|>json<|message|>{"query": "x"}<|call|>',
    "a call in the channel of thoughts": '<|channel|>analysis to=functions.search<|message|>{"query": "x"}<|call|>',
    "doubled wide bars": dsml("｜｜DSML｜｜", "｜｜DSML｜｜"),
    "doubled plain bars": dsml("||DSML||", "||DSML||"),
    "plain bars": dsml("|DSML|", "|DSML|"),
    "blanks around the bars": dsml(" | DSML | ", " | DSML | "),
    "blanks in the bars": dsml("｜ DSML ｜", "｜ DSML ｜"),
    "a wide bar and a plain one": dsml("｜DSML|", "｜DSML|"),
    "a blank behind the bars": dsml("｜DSML｜ ", "｜DSML｜ "),
    "bars of two kinds": dsml("||DSML||", "｜DSML｜"),
    "DSML without the section": dsml("||DSML||", "||DSML||").split("\n", 1)[1].rsplit("\n", 1)[0],
    "Step-3": "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
    '<steptml:invoke name="search"><steptml:parameter name="query">x</steptml:parameter></steptml:invoke>'
    "<｜tool_call_end｜><｜tool_calls_end｜>",
    "Step DeepResearch": '<steptml:toolcall>\n<steptml:invoke name="search">\n<steptml:parameter name="query">x'
    "</steptml:parameter>\n</steptml:invoke>\n</steptml:toolcall>",
    "Hunyuan 3": "<tool_calls>\n<tool_call>search<tool_sep>\n<arg_key>query</arg_key>\n<arg_value>x</arg_value>\n"
    "</tool_call>\n</tool_calls>",
    "SmolLM3": '<code>\nsearch(query="x")\n</code>',
    "SmolLM3, printed": '<code>\nprint(search(query="x"))\n</code>',
    "SmolLM3, named and printed": '<code>\nfound = search(query="x")\nprint(found)\n</code>',
    "GLM, key glued to the name": "<tool_call>searchquery</arg_key><arg_value>x</arg_value></tool_call>",
    "GLM, key behind a blank": "<tool_call>search query</arg_key><arg_value>x</arg_value></tool_call>",
    "GLM, key on its own line": "<tool_call>search\nquery</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    "GLM, no tags of keys": "<tool_call>search\nquery\n<arg_value>x</arg_value>\n</tool_call>",
    "GLM, the block's opener for the key's": "<tool_call>search<tool_call>query</arg_key><arg_value>x</arg_value>"
    "</tool_call>",
    "Gemma, no opening quote": '<|tool_call>call:search{query:x<|"|>}<tool_call|>',
    "Gemma, a namespace": '<|tool_call>call:default_api:search{query:<|"|>x<|"|>}<tool_call|>',
    "Gemma, a namespace and no opener": 'call:default_api:search{query:<|"|>x<|"|>}<tool_call|>',
    "a namespace with a dot": '<tool_call>{"name": "default_api.search", "arguments": {"query": "x"}}</tool_call>',
    "a name with a channel": '<tool_call>{"name": "search<|channel|>commentary", "arguments": {"query": "x"}}'
    "</tool_call>",
}


@pytest.mark.parametrize("text", BENT.values(), ids=BENT.keys())
def test_Si_a_bent_format_is_read_whole_and_in_single_characters_and_never_shown(text: str) -> None:
    for reading in (read(text, TOOLS), one_by_one(text)):
        assert [(call.name, dict(call.arguments)) for call in reading.calls] == SEARCHED, reading
        assert (reading.text, reading.problem) == ("", None)
    behind = read(f"I look.\n{text}", TOOLS)
    assert [(call.name, dict(call.arguments)) for call in behind.calls] == SEARCHED
    assert behind.text == "I look."


def test_Si_several_keys_without_their_openers_belong_to_one_call() -> None:
    text = (
        "<tool_call>write_filepath</arg_key><arg_value>a</arg_value>content</arg_key><arg_value>b</arg_value>"
        "<arg_key>append</arg_key><arg_value>true</arg_value></tool_call>"
    )
    assert calls(text) == [("write_file", {"path": "a", "content": "b", "append": True})]
    assert one_by_one(text) == read(text, TOOLS)


def test_Si_a_glued_name_that_fits_two_tools_is_refused() -> None:
    get, getti = tool("get", ("time",), time="string"), tool("getti", ("me",), me="string")
    text = "<tool_call>gettime</arg_key><arg_value>x</arg_value></tool_call>"
    assert calls(text, [get]) == [("get", {"time": "x"})]
    assert calls(text, [get, getti]) == []


def test_Si_a_call_in_the_channel_of_thoughts_counts_only_where_the_reply_stops_there() -> None:
    thought = '<|channel|>analysis to=functions.search<|message|>{"query": "x"}<|call|>'
    for text in (
        f"{thought}<|start|>assistant<|channel|>final<|message|>No need.",
        f"{thought}<|channel|>final<|message|>No need.<|return|>",
    ):
        for reading in (read(text, TOOLS), one_by_one(text)):
            assert reading.calls == ()
            assert reading.text == "No need."
    spoken = '<|channel|>commentary to=functions.search<|message|>{"query": "x"}<|call|>'
    assert calls(f"{spoken}<|start|>assistant<|channel|>final<|message|>A moment.") == SEARCHED


@pytest.mark.parametrize(
    "text",
    [
        "to=functions is a part of headers",
        "commentary to=everyone follows",
        "<code>x = 1</code> is code",
        "Use <code>search(query)</code> for it.",
        "<code>search</code>",
        "a || b, DSML | c",
        "call:me later",
    ],
)
def test_Si_text_that_only_looks_like_a_bent_format_is_shown(text: str) -> None:
    assert read(text, TOOLS).text == one_by_one(text).text == text
    assert read(text, TOOLS).problem is None


# --- echoes -----------------------------------------------------------------------------------------------------------

WRITTEN = {one.id: render(Written("search", {"query": "x"}), one.id) for one in all_formats()}
HALF_TAGS = ("minicpm5-xml",)
"""Formats whose opener is a tag with the name in it: without it there is nothing left to read."""


def without_opener(format_id: str) -> str:
    text = WRITTEN[format_id]
    openers = next(one.opens for one in all_formats() if one.id == format_id)
    return text[max((len(opener) for opener in openers if text.startswith(opener)), default=0) :]


def meant(reading: Reading) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, dict(call.arguments)) for call in reading.calls if not call.echo]


@pytest.mark.parametrize("gap", ["", "\n", " "])
@pytest.mark.parametrize("format_id", WRITTEN)
def test_Sc_a_call_that_is_echoed_behind_itself_is_one_call_in_any_format(format_id: str, gap: str) -> None:
    for echo in (WRITTEN[format_id], without_opener(format_id)):
        text = WRITTEN[format_id] + gap + echo
        for reading in (read(text, TOOLS, format=format_id), one_by_one(text)):
            assert meant(reading) == SEARCHED, reading
            assert format_id in HALF_TAGS or (reading.text, reading.problem) == ("", None)


def test_Sc_three_times_the_same_is_one_call_and_another_call_ends_it() -> None:
    other = CALL.replace('"x"', '"y"')
    assert meant(read(CALL * 3, TOOLS)) == SEARCHED
    assert [given["query"] for _, given in meant(read(CALL + other + CALL, TOOLS))] == ["x", "y", "x"]
    assert len(meant(read(f"{CALL}\nOnce more:\n{CALL}", TOOLS))) == 2


# --- examples ---------------------------------------------------------------------------------------------------------

FENCES = [("```xml\n", "\n```"), ("~~~\n", "\n~~~"), ("`", "`"), ("  ```\n", "\n  ```"), ("````text\n", "\n````")]
OWN_FENCE = ("tool-code", "json-fence", "command-r-plus")
"""Formats that are fences themselves."""


@pytest.mark.parametrize(("opens", "closes"), FENCES)
@pytest.mark.parametrize("format_id", [name for name in WRITTEN if name not in OWN_FENCE])
def test_Sd_a_call_that_is_explained_is_text_and_stays_in_the_answer(format_id: str, opens: str, closes: str) -> None:
    text = f"You would write:\n\n{opens}{WRITTEN[format_id].strip()}{closes}\n\nThat is all. Shall I do it?"
    for reading in (read(text, TOOLS, format=format_id), one_by_one(text)):
        assert reading.calls == ()
        assert reading.text == text
        assert reading.problem is None


@pytest.mark.parametrize("end", ["", "\n", "\n\n<|im_end|>", "</s>"])
@pytest.mark.parametrize("before", ["", "I look it up.\n\n"])
def test_Sd_a_fenced_call_as_the_whole_reply_or_its_last_block_is_a_call(before: str, end: str) -> None:
    for fence in ("```", "```xml"):
        text = f"{before}{fence}\n{CALL}\n```{end}"
        for reading in (read(text, TOOLS), one_by_one(text)):
            assert meant(reading) == SEARCHED
            assert reading.text == before.strip()
    assert calls(f"```xml\n{CALL}") == SEARCHED


def test_Sd_several_fenced_calls_are_all_meant_or_all_explained() -> None:
    other = CALL.replace('"x"', '"y"')
    both = f"```xml\n{CALL}\n{other}\n```"
    apart = f"```xml\n{CALL}\n```\n\n```xml\n{other}\n```"
    for text in (both, apart):
        assert [given["query"] for _, given in meant(read(text, TOOLS))] == ["x", "y"]
        assert meant(one_by_one(text)) == meant(read(text, TOOLS))
        explained = f"{text}\n\nThis is how."
        assert read(explained, TOOLS).text == one_by_one(explained).text == explained
        assert read(explained, TOOLS).calls == ()


def test_Sd_a_call_outside_of_fences_runs_whatever_stands_behind_it() -> None:
    assert calls(f"Let me look.\n{CALL}\nJust a moment.") == SEARCHED
    explained = f"```\n{CALL}\n```\nLike this:\n{CALL}"
    reading = read(explained, TOOLS)
    assert meant(reading) == SEARCHED
    assert reading.text == f"```\n{CALL}\n```\nLike this:"


def test_Sd_an_example_is_held_back_only_until_the_first_word_behind_it() -> None:
    reader = StreamReader(TOOLS)
    assert reader.feed(f"```xml\n{CALL}") == ""
    assert reader.feed("\n```\n") == ""
    assert reader.feed("So") == f"```xml\n{CALL}\n```\nSo"
