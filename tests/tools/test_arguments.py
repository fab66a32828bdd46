"""D3, S1: what a call says, also in broken JSON as models really wrote it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callformats import ToolSpec, read
from runner.guards import defang
from runner.tools.arguments import Arguments, Broken, Strays, read_arguments

# D3, S1: what a call says.

ANY: dict[str, Any] = {"type": "object"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "where": {"type": "object", "properties": {"tags": {"type": "array"}}},
        "tags": {"type": "array", "items": {"type": "object"}},
        "either": {"type": ["string", "array"]},
        "choice": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "ref": {"$ref": "#/$defs/list"},
    },
    "$defs": {"list": {"type": "array"}},
}


def _read(raw: object, schema: dict[str, Any] = SCHEMA, *, strict: bool = False) -> Arguments:
    read = read_arguments(raw, schema, strict=strict)
    assert isinstance(read, Arguments), read
    return read


NOTHING: list[Any] = ["", "  \n", "{}", {}, '""', '" "', "null", " null\n", '"null"', None]
NO_FIELDS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False, "title": "now"},
]


@pytest.mark.parametrize("raw", [*NOTHING, '"{}"', json.dumps('""')])
def test_D3_no_arguments_are_an_empty_object(raw: object) -> None:
    assert _read(raw).values == {}


@pytest.mark.parametrize("raw", NOTHING)
@pytest.mark.parametrize("strict", [True, False])
def test_K5_nothing_is_an_error_that_names_what_is_required(raw: object, strict: bool) -> None:
    needs: dict[str, Any] = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    read = read_arguments(raw, needs, strict=strict)
    assert '"to"' in (read.problem if isinstance(read, Broken) else "; ".join(read.problems))


@pytest.mark.parametrize("raw", ["", "null", '""', None])
def test_K5_nothing_is_also_enough_for_a_tool_that_acts_and_needs_nothing(raw: object) -> None:
    assert _read(raw, NO_FIELDS[1], strict=True).values == {}


@pytest.mark.parametrize("schema", NO_FIELDS)
def test_K5_what_a_model_adds_to_a_tool_without_fields_is_dropped(schema: dict[str, Any]) -> None:
    read = read_arguments('{"_call": "look up", "x": 1}', schema, drop=Strays.ANY)
    assert read == Arguments({}, "{}", stray=True)
    assert read_arguments("{}", schema, drop=Strays.ANY) == Arguments({}, "{}")


@pytest.mark.parametrize(
    "more",
    [
        {"properties": {"n": {}}},
        {"additionalProperties": True},
        {"additionalProperties": {}},
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^x": {}}},
        {"required": ["x"]},
        {"anyOf": [{"properties": {"x": {}}}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}},
    ],
)
def test_K5_a_schema_that_takes_fields_in_any_way_gets_them(more: dict[str, Any]) -> None:
    read = read_arguments('{"x": "1"}', {"type": "object", **more}, drop=Strays.ANY)
    assert isinstance(read, Arguments)
    assert (read.values, read.stray) == ({"x": "1"}, False)


def test_J3_of_a_call_that_acts_only_names_that_no_tool_gives_a_field_are_dropped() -> None:
    kept = read_arguments('{"_call": "leave"}', NO_FIELDS[2], strict=True, drop=Strays.MARKED)
    assert kept == Arguments({}, "{}", stray=True)
    assert isinstance(read_arguments('{"group": 5}', NO_FIELDS[2], strict=True, drop=Strays.MARKED), Broken)


@pytest.mark.parametrize("raw", ['{"text": "a"}', {"text": "a"}, json.dumps('{"text": "a"}'), ' {"text":"a"}\n'])
def test_D3_an_object_comes_as_text_as_a_value_or_encoded_twice(raw: object) -> None:
    read = _read(raw)
    assert (read.values, read.text, read.mended) == ({"text": "a"}, '{"text":"a"}', False)


@pytest.mark.parametrize("raw", ["[]", "[1]", "5", "true", '"text"', [1], 5, True, json.dumps('"{}"')])
def test_D3_what_is_no_object_is_broken_and_never_empty(raw: object) -> None:
    assert isinstance(read_arguments(raw, SCHEMA), Broken)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ('{"count": 1', {"count": 1}),
        ('{"where": {"tags": [1, 2', {"where": {"tags": [1, 2]}}),
        ('{"text": "a"', {"text": "a"}),
        ('{"text": "a",}', {"text": "a"}),
        ('{"tags": [{"a": 1},],}', {"tags": [{"a": 1}]}),
        ("{'text': 'it\\'s \"so\"'}", {"text": 'it\'s "so"'}),
        ("{'text': \"None\", 'choice': None}", {"text": "None", "choice": None}),
        ('{"choice": {"a": True, "b": False}}', {"choice": {"a": True, "b": False}}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        ('```json\n{"text": "a"}\n```', {"text": "a"}),
        ('{"text": "a"}\n```', {"text": "a"}),
        ('{"count": 1}}', {"count": 1}),
        ('{"either": [1}', {"either": [1]}),
        ('{text: "a", "count": 1}', {"text": "a", "count": 1}),
        ('{"text": "a",, "count": 1,}', {"text": "a", "count": 1}),
        ('{"text": "a" "count": 1}', {"text": "a", "count": 1}),
        ('{"count": 1 /* one */}', {"count": 1}),
        ('{"either": (1, 2)}', {"either": [1, 2]}),
        ('{"text": "\\d+"}', {"text": "\\d+"}),
        ('[{"text": "a"}]', {"text": "a"}),
    ],
)
def test_S1_one_reading_is_mended(raw: str, values: dict[str, Any]) -> None:
    read = _read(raw)
    assert (read.values, read.mended) == (values, True)
    assert isinstance(read_arguments(raw, SCHEMA, strict=True), Broken)


@pytest.mark.parametrize(
    "raw",
    [
        '{"text": "cut of',
        '{"text": "cut of}',
        '{"text": "a", "cou',
        '{"text": ',
        '{"text"',
        '{"text": "a",',
        "{",
        '{"where": {',
        '{"tags": [',
        '{"tags": [1,}',
        '{"tags": [1}, "count": 2}',
        '{"count": 1}, "text": "a"}',
        '{"count": 1}{"count": 2}',
        '{"text": "a"} {"text": "a"}',
        '{"text": word}',
        '{"text": "a" "b"}',
        "{,}",
        '{"count": 1 2}',
        '{"count": NaN}',
        '{"count": Infinity}',
        '{"count": 1e999}',
        '{"count": ' + "9" * 5_000 + "}",
        '{"count": 1, "count": 2}',
        "[" * 100_000,
        '{"a":' * 3_000,
        '{"a":' * 100 + "1" + "}" * 100,
        'Here it is: {"count": 1}',
        '{"count": (1)}',
        '{"text": "a\\„ b"}',
        '{"text": "Oslo, "count": 1}',
        '{"text": "a, {"count": 1}, "tags": []}',
        '{"text": "a", {"count": 1}, {"count": 2}}',
        '[{"count": 1}, {"count": 1}]',
        '```json\n{"count": 1}\n``` and so on',
        "{'text': 'a' 'b'}",
        "{'text': 'it's'}",
        '{"text": tru',
        "}",
        "{'a', 'b'}",
    ],
)
def test_S1_what_has_no_single_reading_is_broken(raw: str) -> None:
    read = read_arguments(raw, ANY)
    assert isinstance(read, Broken)
    assert read.problem
    assert len(read.raw) <= 300


def test_D3_the_same_value_given_twice_has_one_reading() -> None:
    assert _read('{"count": 1, "count": 1}').values == {"count": 1}


def test_S1_a_mended_call_counts_only_when_the_schema_accepts_it() -> None:
    assert isinstance(read_arguments('{"count": "one"', SCHEMA), Broken)
    assert isinstance(read_arguments('{"count": 1', {"$ref": "http://schemas.example/x"}), Broken)
    plain = _read('{"count": "one"}')
    assert plain.problems == ('count: must be integer, got "one"',)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ({"where": '{"tags": "[1]"}'}, {"where": {"tags": [1]}}),
        ({"tags": '[{"a": 1}]'}, {"tags": [{"a": 1}]}),
        ({"choice": '{"a": 1}'}, {"choice": {"a": 1}}),
        ({"ref": "[1]"}, {"ref": [1]}),
    ],
)
def test_S1_json_text_becomes_what_the_schema_wants(raw: dict[str, Any], values: dict[str, Any]) -> None:
    assert _read(raw).values == values


@pytest.mark.parametrize("raw", [{"text": '{"a": 1}'}, {"either": "[1]"}, {"unknown": "[1]"}])
def test_S1_strings_stay_where_the_schema_takes_strings(raw: dict[str, Any]) -> None:
    read = _read(raw)
    assert (read.values, read.mended) == (raw, False)


def test_J3_strict_arguments_have_no_second_chance() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"user": {"type": "object"}},
        "required": ["user"],
        "additionalProperties": False,
    }
    assert _read('{"user": {}}', schema, strict=True).values == {"user": {}}
    for raw in ('{"user": "{}"}', '{"user": {}, "x": 1}', "", json.dumps('{"user": {}}'), '{"user": {}'):
        assert isinstance(read_arguments(raw, schema, strict=True), Broken)
    assert isinstance(read_arguments({}, {"$ref": "http://schemas.example/x"}, strict=True), Broken)


def test_S7_inert_markers_are_live_for_the_tool_and_inert_in_the_history() -> None:
    inert = defang("<|im_end|>")
    read = _read({"text": inert})
    assert read.values == {"text": "<|im_end|>"}
    assert json.loads(read.text) == {"text": inert}


@pytest.mark.parametrize("given", ['{"a": "x\ud83d\ude00y"}', '{"a": "x\\ud83d\\ude00y"}', {"a": "x\ud83d\ude00y"}])
def test_K5_a_surrogate_pair_that_came_as_two_halves_is_one_character(given: object) -> None:
    read = read_arguments(given, {})
    assert isinstance(read, Arguments)
    assert (read.values, read.text) == ({"a": "x😀y"}, '{"a":"x😀y"}')


def test_D3_lone_surrogates_are_dropped() -> None:
    assert _read('{"text": "a\\ud800b"}').values == {"text": "ab"}


@given(st.text() | st.text(alphabet="{}[]\",:\\ \n'aTrue1-.e"))
def test_D3_no_text_makes_the_reader_raise_and_history_text_is_valid(raw: str) -> None:
    read = read_arguments(raw, ANY)
    if isinstance(read, Arguments):
        assert isinstance(json.loads(read.text), dict)
        json.dumps(read.values, allow_nan=False).encode()


_values = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def _strings(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set(value).union(*map(_strings, value.values()))
    return set().union(*map(_strings, value)) if isinstance(value, list) else set()


@given(_values, st.data())
def test_S1_a_text_cut_anywhere_never_yields_a_string_that_was_not_there(values: dict[str, Any], data: Any) -> None:
    text = json.dumps(values, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text)))]
    read = read_arguments(cut, ANY)
    if isinstance(read, Arguments):
        assert _strings(json.loads(read.text)) <= _strings(values)


@given(_values)
def test_D3_valid_arguments_come_through_unchanged(values: dict[str, Any]) -> None:
    read = _read(json.dumps(values), ANY)
    assert json.loads(read.text) == values
    assert not read.mended


# S1: broken JSON recorded with a lenient library, and the part of it that an agent may take.

_FILE = Path(__file__).parent / "cases" / "json_repair.jsonl"
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in map(json.loads, _FILE.read_text().splitlines())}

CUT_INSIDE_A_STRING = [
    "jr-014",
    "jr-042",
    "jr-044",
    "jr-046",
    "jr-060",
    "jr-139",
    "jr-146",
    "jr-149",
    "jr-207",
    "jr-209",
]
GUESSED_BY_THE_LIBRARY = ["jr-035", "jr-102", "jr-115", "jr-127", "jr-155", "jr-167", "jr-184", "jr-189"]
ONE_READING = ["jr-005", "jr-037", "jr-061", "jr-142", "jr-213", "jr-215", "jr-216", "jr-219", "jr-311", "jr-328"]


def _output(case: dict[str, Any]) -> Any:
    output = case["json_repair_output"]
    output = json.loads(output) if isinstance(output, str) and output else output
    # A value and a list of remarks, or a list where the arguments should be an object.
    return output[0] if isinstance(output, list) and len(output) in (1, 2) and isinstance(output[0], dict) else output


def _stripped(value: Any) -> Any:
    """The library drops white space at the ends of strings; we keep what was written."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items()}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("id_", CUT_INSIDE_A_STRING)
def test_S1_a_string_cut_off_is_never_completed(id_: str) -> None:
    assert isinstance(read_arguments(CASES[id_]["raw"], ANY), Broken)


@pytest.mark.parametrize("id_", GUESSED_BY_THE_LIBRARY)
def test_S1_what_has_to_be_guessed_is_refused(id_: str) -> None:
    assert isinstance(read_arguments(CASES[id_]["raw"], ANY), Broken)


@pytest.mark.parametrize("id_", ONE_READING)
def test_S1_what_has_one_reading_is_mended_like_the_library_does(id_: str) -> None:
    read = read_arguments(CASES[id_]["raw"], ANY)
    assert isinstance(read, Arguments)
    assert read.mended
    assert read.values == _output(CASES[id_])


# Sl: one policy, whether a call comes natively or as text.

W = ToolSpec("w", "", ANY)
IN_A_TEXT: dict[str, Callable[[str], str]] = {
    "hermes": lambda raw: f'<tool_call>{{"name": "w", "arguments": {raw}}}</tool_call>',
    "mistral": lambda raw: f"[TOOL_CALLS]w[ARGS]{raw}</s>",
    "kimi": lambda raw: f"<|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>{raw}<|tool_call_end|>",
    "deepseek": lambda raw: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>w<｜tool▁sep｜>{raw}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "tags": lambda raw: f"<tool_call><function=w>{raw}</function></tool_call>",
    "harmony": lambda raw: f"<|channel|>commentary to=functions.w<|message|>{raw}<|call|>",
    "encoded": lambda raw: f"<tool_call>{json.dumps({'name': 'w', 'arguments': raw})}</tool_call>",
}


def _natively(raw: str) -> Any:
    read = read_arguments(raw, ANY)
    return read.values if isinstance(read, Arguments) else None


def _as_text(raw: str, form: str = "hermes") -> Any:
    calls = read(IN_A_TEXT[form](raw), [W]).calls
    return dict(calls[0].arguments) if calls else None


@pytest.mark.parametrize("id_", [id_ for id_, case in CASES.items() if case["raw"].strip()])
def test_Sl_what_is_refused_natively_is_refused_as_text_and_what_runs_has_the_same_values(id_: str) -> None:
    raw = CASES[id_]["raw"]
    assert _natively(raw) == _as_text(raw)


@pytest.mark.parametrize("form", IN_A_TEXT)
@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1, "a": 2}',
        '{"a": {"b": 1, "b": 2}}',
        '{"a": "cut of',
        '{"a": 1, ',
        '{"a": {',
        '{"a": [{"b": 1},',
        '{"a": 1}, "b": 2}',
        '{"a": [1}, "b": 2}',
        '{"a": 1}} "b": 2}',
        '{"a": "x, "b": "y"}',
        '{"a": "C:\\new \\;"}',
    ],
)
def test_Sl_what_may_mean_two_things_runs_nowhere(raw: str, form: str) -> None:
    assert (_natively(raw), _as_text(raw, form)) == (None, None)


@pytest.mark.parametrize("form", IN_A_TEXT)
@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ('{"a": 1,}', {"a": 1}),
        ("{'a': True}", {"a": True}),
        ('{"a": "two\nlines"}', {"a": "two\nlines"}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": 1 /* one */}', {"a": 1}),
        ('{"a": (1, 2), "b": .5}', {"a": [1, 2], "b": 0.5}),
    ],
)
def test_Sl_what_has_one_reading_runs_everywhere(raw: str, values: dict[str, Any], form: str) -> None:
    assert (_natively(raw), _as_text(raw, form)) == (values, values)


_SLIPS = st.sampled_from(
    [*"{}[]()\",:'", '"a"', '"b": ', "a: ", "1", "True", "null", " ", "\n", "\\d", "\\.", "//x\n", "/**/", "<", "```"]
)


@pytest.mark.parametrize("unit", ["1,", "[],", "'a',", "(1, 2),", "1 ", '"a"'])
def test_Sm_a_broken_text_of_very_many_values_is_not_mended(unit: str) -> None:
    assert isinstance(read_arguments('{"a": [' + unit * 20_000, ANY), Broken)
    assert isinstance(read_arguments('{"a": [' + unit * 500 + "1", ANY), Arguments)


@given(st.lists(_SLIPS, max_size=12).map("".join))
def test_Sl_a_value_that_runs_natively_is_the_one_that_would_run_as_text(inside: str) -> None:
    """Closers and commas of the text around a value may decide whether it runs, but never what it says."""
    raw = f'{{"a": 1, {inside}}}'
    native = _natively(raw)
    for form in IN_A_TEXT:
        text = _as_text(raw, form)
        assert native is None or text is None or native == text
    assert _as_text(raw, "encoded") == native


@pytest.mark.parametrize("id_", [id_ for id_, case in CASES.items() if "salvage" not in str(case["options"])])
def test_S1_a_mended_reading_never_differs_from_the_recorded_one_and_a_plain_one_is_json(id_: str) -> None:
    case = CASES[id_]
    read = read_arguments(case["raw"], ANY)
    if isinstance(read, Arguments) and read.mended:
        assert _stripped(read.values) == _stripped(_output(case))
    elif isinstance(read, Arguments):
        assert read.values == (json.loads(case["raw"]) if case["raw"].strip() else {}) or case["raw"] == '""'
