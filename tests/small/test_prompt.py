"""S3, S6, S8: what is added to a prompt, and what it costs."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from config.choices import CallFormat
from runner.channel.answering import MODEL_ANSWERS_LINE
from runner.context.tokens import Ruler, load_tokenizer
from runner.conversation.request import ToolSpec
from runner.conversation.units import ToolResult
from runner.small import answers, evidence, forms, guided, hints, prompt, shown
from runner.small.answers import Done
from runner.small.escalation import Ladder
from runner.small.forms import family_of, tools_in_words
from runner.small.guiding import CHANTED, FAULTY_TEXT, FLAGGED, LOADED, NOT_LOADED, SWITCHED_OFF, UNSENT
from runner.small.reply_tool import REPLY, REPLY_SPEC
from runner.tools import jobs, validate_args
from runner.tools.results import ErrorCode

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
    "restated": (prompt.restated("", answer_by=None), 26),
    "restated, answer by tool": (prompt.restated("", answer_by=REPLY), 33),
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
