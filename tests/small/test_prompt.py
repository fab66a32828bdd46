"""S3, S6, S8, L8, Q5: what is added to a prompt, what it costs, and what of a request stays the same."""

from __future__ import annotations

import ast
import asyncio
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.choices import CallFormat
from runner.channel.answering import MODEL_ANSWERS_LINE
from runner.context.tokens import Ruler, load_tokenizer
from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Text, ToolCall, ToolResult, Unit, UserTurn, newest_user
from runner.host.events import Json
from runner.small import answers, evidence, forms, guided, hints, prompt, shown, unknown_ids
from runner.small.answers import Done
from runner.small.escalation import Ladder
from runner.small.forms import family_of, tools_in_words
from runner.small.guiding import CHANTED, FAULTY_TEXT, FLAGGED, LOADED, NOT_LOADED, SWITCHED_OFF, UNSENT
from runner.small.hints import CUT_SHORT, LOOK_AFTER, Hints
from runner.small.part import EVERY_PART, Part, all_but
from runner.small.reply_tool import REPLY, REPLY_SPEC
from runner.small.request_shaping import HISTORY_TURNS, codes_in, recent_turns
from runner.small.shown import Places, choose
from runner.tools import jobs, validate_args
from runner.tools.results import ErrorCode

# S3, S6, S8: what is added to a prompt, and what it costs.

FOLDER = Path(prompt.__file__).parent
LOOK = ToolSpec("look", "Looks.", {})
TODO = Done("todo", "{}", '[{"title": "sweep", "done": false}]')


def _slips(others: list[str]) -> list[str]:
    ladder = Ladder()
    return [ladder.slip("look", "Missing.", example="look()", others=others).text for _ in range(4)]


RUNGS, ALONE = _slips(["find", "ask"]), _slips([])
_LADDER = Ladder()
REPEATED = [_LADDER.unlike_before("again") for _ in range(2)][1]
RULER = Ruler(asyncio.run(load_tokenizer()))
COUNTED = {
    "example": (prompt.EXAMPLE_LINE, 19),
    "codes": (prompt.CODES_LINE, 16),
    "all codes": ("\n".join(prompt.CODES.values()), 81),
    "site": (prompt.SITE_HEADING, 4),
    "place": (prompt.PLACE_LINE, 9),
    "restated": (prompt.restated("", answer_by=None, failed=False), 39),
    "restated, answer by tool": (prompt.restated("", answer_by=REPLY, failed=False), 44),
    "restated after a failure": (prompt.restated("", answer_by=None, failed=True), 26),
    "restated after a failure, answer by tool": (prompt.restated("", answer_by=REPLY, failed=True), 33),
    "tools": (forms.TOOLS_INTRO, 15),
    "call": (forms.CALL_LINE, 20),
    "then": (forms.THEN_LINE, 8),
    "plain": (forms.PLAIN_LINE, 11),
    "reply": (forms.REPLY_LINE.format(tool=REPLY), 18),
    "reply tool": (REPLY_SPEC.description, 24),
    "index": (shown.INDEX_INTRO, 14),
    "load tool": (shown.LOAD_SPEC.description, 20),
    "index line": (shown.choose([LOOK], "", most=0, loaded=(), recent=()).index, 19),
    "answer by tool": (MODEL_ANSWERS_LINE.format(tool="event_reply"), 28),
    # what is said in the prompt only, once its moment has come
    "flagged": (FLAGGED, 23),
    "chanted": (CHANTED, 21),
    "loaded": (LOADED, 12),
    "not loaded": (NOT_LOADED, 18),
    "faulty": (FAULTY_TEXT, 20),
    "unsent": (UNSENT, 20),
    "id that stands nowhere": (unknown_ids.UNKNOWN, 45),
    "switched off": (SWITCHED_OFF, 10),
    "failure ignored": (answers.ignores_failure("Done!", [Done("look", "{}", "no disk", code="failed")]), 36),
    "work passed on": (answers.passes_work_on("use look", ["look"], ()), 23),
    "open items": (answers.leaves_open([TODO], can_read=False), 29),
    "not looked at": (answers.leaves_open([Done("write", "{}", "ok")], can_read=True), 25),
    "hint: look after": (hints.LOOK_AFTER, 15),
    "hint: cut short": (hints.CUT_SHORT, 26),
    "result in words": (forms._told(ToolResult("1", "look", "x")).text, 5),
    "slip 1": (RUNGS[0], 21),
    "slip 2": (RUNGS[1], 19),
    "slip 3": (RUNGS[2], 28),
    "slip 4": (RUNGS[3], 24),
    "slip 2, nothing else": (ALONE[1], 19),
    "slip 3, nothing else": (ALONE[2], 20),
    "the same again": (REPEATED, 16),
    "job": (jobs.STARTED, 88),
    "job still runs": (jobs.RUNNING, 39),
    "job unknown": (jobs.UNKNOWN, 15),
    "job broken off": (jobs.BROKEN, 15),
    "behind a job": (jobs.IN_ORDER, 32),
    "job tool": (jobs.JOB_SPEC.description, 23),
    "ports": (jobs.LISTENING, 13),
    "no port": (jobs.SILENT, 10),
    "sandbox busy": (jobs.BUSY, 18),
    "job awaited": (answers.AWAITED, 55),
    "evidence": (evidence.INTRO, 13),
    "first evidence": (evidence.FIRST_INTRO, 20),
    "more evidence": (evidence.MORE, 5),
}
NO_PROMPT = (
    ": the schema for guided calls was ",
    "; calls are asked for as text from now on",
    answers._ADMITS.pattern,
    answers._CUE.pattern,
)
"""Words of the folder that no model reads: lines of the log, and what is looked for."""


@pytest.mark.parametrize("line", list(COUNTED))
def test_S6_every_added_line_costs_what_is_written_here(line: str) -> None:
    text, tokens = COUNTED[line]
    assert RULER.text(str(text)) == tokens


def _literals(path: Path) -> Iterator[str]:
    """The texts written out in a module, without docstrings; of formatted ones the pieces between the fields."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
            yield from re.split(r"\{\w+\}|\n", node.value)


def test_S6_no_line_of_prompt_text_is_left_out_of_the_table() -> None:
    counted = "\n".join(str(text) for text, _ in COUNTED.values())
    known = [*NO_PROMPT, counted]
    written = [text for path in sorted(FOLDER.glob("*.py")) for text in _literals(path)]
    lines = [text for text in written if len(text) > 24 and text.count(" ") > 2]
    assert len(lines) > 40
    assert [line for line in lines if not any(line.strip() in each for each in known)] == []


def tool(**properties: Any) -> ToolSpec:
    return ToolSpec(
        "look", "Looks.", {"type": "object", "properties": properties, "required": list(properties), "title": "T"}
    )


SCHEMAS: list[dict[str, Any]] = [
    {"city": {"type": "string"}},
    {"n": {"type": "integer", "minimum": 5}},
    {"unit": {"enum": ["c", "f"]}},
    {"tags": {"type": "array", "items": {"type": "string"}}},
    {"on": {"type": "boolean"}, "deep": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    {},
]


@pytest.mark.parametrize("properties", SCHEMAS, ids=str)
def test_S3_the_worked_call_is_one_that_the_tool_accepts(properties: dict[str, Any]) -> None:
    spec = tool(**properties)
    arguments = prompt.example_arguments(spec.parameters)
    assert validate_args(spec.parameters, arguments) is None
    jsonschema.validate(arguments, dict(spec.parameters))


def test_S3_every_error_code_has_a_meaning() -> None:
    assert set(prompt.CODES) == set(ErrorCode)


def test_S3_no_line_stands_for_what_does_not_apply() -> None:
    assert prompt.lines(None, None, "  ", ()) == ()


@pytest.mark.parametrize("properties", SCHEMAS, ids=str)
def test_S8_the_schema_has_one_branch_for_each_tool_with_the_name_first(properties: dict[str, Any]) -> None:
    spec = tool(**properties)
    asked: Any = guided.response_format([spec, REPLY_SPEC])["response_format"]
    schema = asked["json_schema"]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert [list(branch["properties"]) for branch in schema["anyOf"]] == [["name", "arguments"]] * 2
    jsonschema.validate({"name": "look", "arguments": prompt.example_arguments(spec.parameters)}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "other", "arguments": {}}, schema)


@pytest.mark.parametrize(
    ("wrote", "form"),
    [
        ("json", CallFormat.JSON),
        ("json-fence", CallFormat.JSON),
        ("hermes", CallFormat.TAGS),
        ("qwen3-xml", CallFormat.TAGS),
        ("pythonic", CallFormat.PYTHONIC),
        ("lfm2-pythonic", CallFormat.PYTHONIC),
        ("tool-code", CallFormat.PYTHONIC),
    ],
)
def test_S1_what_a_model_wrote_by_itself_decides_the_form_it_is_asked_for(wrote: str, form: CallFormat) -> None:
    assert family_of(wrote) is form


def test_S1_tools_in_words_hold_each_tool_once_and_the_form_of_a_call() -> None:
    text = tools_in_words([tool(city={"type": "string"})], "hermes", answer_by=None)
    assert text.count('"name": "look"') == 1
    assert "<tool_call>" in text
    assert text.endswith(forms.PLAIN_LINE)


# S6: advice that is given once a conversation.

WROTE = Done("write", "{}", "ok")
LONG = Done("look", "{}", "x" * 2_000, reads=True)
STEPS = st.lists(st.lists(st.sampled_from([WROTE, LONG, Done("look", "{}", "x")]), max_size=3), max_size=8)


def after(hints: Hints, *step: Done, can_read: bool = True) -> str | None:
    hints.after(step, can_read=can_read, shown=1_500)
    return hints.due


def test_S6_a_hint_stays_due_until_a_model_has_replied_and_is_then_noted() -> None:
    noted: list[Json] = []
    hints = Hints(None, noted.append)
    assert after(hints, WROTE) == LOOK_AFTER
    assert [hints.due] == [LOOK_AFTER]
    assert noted == []
    hints.given()
    assert [hints.due] == [None]
    assert noted == [["look-after"]]
    assert after(hints, WROTE) is None
    assert after(hints, WROTE, LONG) == CUT_SHORT


def test_S6_a_moment_that_has_not_come_gives_no_hint() -> None:
    hints = Hints(None, lambda _: None)
    assert after(hints, WROTE, can_read=False) is None
    assert after(hints, Done("write", "{}", "no", code="failed"), Done("look", "{}", "short")) is None


@given(st.none() | st.integers() | st.lists(st.sampled_from(["look-after", "cut-short", "x", 7, None])), STEPS)
def test_S6_no_hint_is_given_twice_whatever_was_stored(stored: Json, steps: list[list[Done]]) -> None:
    given_: list[str] = []
    hints = Hints(stored, lambda _: None)
    for step in steps:
        due = after(hints, *step)
        given_ += due.splitlines() if due else []
        hints.given()
    assert len(given_) == len(set(given_))
    if isinstance(stored, list):
        assert not ("look-after" in stored and LOOK_AFTER in given_)


# L8, S3: what of a request of the small profile stays from one request to the next.


def user() -> UserTurn:
    return UserTurn((Text("?"),))


def conversation(rounds: list[int]) -> tuple[Unit, ...]:
    """Questions, each with so many turns of the model behind it."""
    units: list[Unit] = []
    for count in rounds:
        units += [user(), *(AssistantTurn("!") for _ in range(count))]
    return tuple(units)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_S3_at_most_twelve_turns_stay_and_the_newest_question_and_the_newest_turn_among_them(rounds: list[int]) -> None:
    units = conversation(rounds)
    kept = recent_turns(units)
    assert 1 <= len(kept) <= HISTORY_TURNS
    assert isinstance(kept[0], UserTurn) and kept[-1] is units[-1]
    assert any(unit is units[newest_user(units)] for unit in kept)


@given(st.lists(st.integers(1, 3), min_size=10, max_size=40))
def test_L8_the_history_of_a_small_model_begins_anew_in_few_of_its_requests(rounds: list[int]) -> None:
    units = conversation(rounds)
    kept = [recent_turns(units[: end + 1]) for end in range(len(units))]
    moves = sum(one[0] is not two[0] for one, two in itertools.pairwise(kept))
    assert moves <= len(units) / 5


def tools(*names: str) -> list[ToolSpec]:
    return [ToolSpec(name, f"Works with {name}.", {}) for name in names]


OFFERED = tools("lights", "music", "stocks", "timer")


def chosen(query: str, before: list[str], **more: object) -> set[str]:
    given = {"most": 2, "loaded": (), "recent": (), **more}
    return {tool.name for tool in choose(OFFERED, query, before=before, **given).tools}  # type: ignore[arg-type]


def test_L8_tools_that_were_shown_stay_while_no_other_is_asked_for() -> None:
    assert chosen("good morning", ["timer", "stocks"]) == {"timer", "stocks"}
    assert chosen("the timer please", ["timer", "stocks"]) == {"timer", "stocks"}


def test_S2_a_tool_that_is_asked_for_takes_the_place_of_the_one_least_like_the_request() -> None:
    assert chosen("lights on, and a timer", ["timer", "stocks"]) == {"timer", "lights"}
    assert chosen("lights and music", ["timer", "stocks"]) == {"music", "lights"}


def test_S2_a_tool_that_was_loaded_is_always_shown() -> None:
    assert "music" in chosen("the timer and the stocks", ["timer", "stocks"], loaded=("music",))


def test_L8_places_that_a_conversation_kept_count_where_those_tools_are_still_on_offer() -> None:
    assert chosen("good morning", ["timer", "gone"]) == {"lights", "music"}
    assert Places(["a", 5, None]).names == ["a"]
    assert Places({"a": 1}).names == []


def test_L8_places_are_noted_when_they_change_and_only_where_they_last() -> None:
    noted: list[object] = []
    places = Places(None, noted.append)
    places.keep(["a", "b"], lasting=True)
    places.keep(["a", "b"], lasting=True)
    places.keep(["a"], lasting=False)
    assert noted == [["a", "b"]]


def test_L8_error_codes_stay_explained_while_they_stand_in_the_history() -> None:
    call, failed = ToolCall("c", "look", "{}"), ToolResult("c", "look", "Error [timeout]: no answer")
    assert codes_in((user(), AssistantTurn("", (call,), (failed,)))) == {ErrorCode.TIMEOUT}
    assert codes_in((user(), AssistantTurn("Error [failed]: said in words"))) == frozenset()


@pytest.mark.parametrize("code", [*ErrorCode, "of_a_later_version"])
def test_S3_a_code_that_has_no_explanation_is_left_out(code: str) -> None:
    call, failed = ToolCall("c", "look", "{}"), ToolResult("c", "look", f"Error [{code}]: no")
    assert codes_in((user(), AssistantTurn("", (call,), (failed,)))) == {one for one in prompt.CODES if one == code}


# Q5: the parts that can be left out are told to owners, and leaving one out leaves the others.

PAGE = Path(__file__).parents[2] / "docs" / "small-models.md"


def test_Q5_every_part_stands_in_the_table_of_the_page_on_small_models() -> None:
    rows = re.findall(r"^\| S\d \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {part.value for part in Part} <= {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}


def test_Q5_all_but_some_parts_is_every_other_part() -> None:
    assert all_but() == EVERY_PART == frozenset(Part)
    assert EVERY_PART - all_but(Part.LADDER, Part.WRAP_UP) == {Part.LADDER, Part.WRAP_UP}
