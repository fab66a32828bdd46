"""S1: broken JSON recorded with a lenient library, and the part of it that an agent may take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.tools.arguments import Arguments, Broken, read_arguments

_FILE = Path(__file__).parent / "cases" / "json_repair.jsonl"
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in map(json.loads, _FILE.read_text().splitlines())}
ANY: dict[str, Any] = {"type": "object"}

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
GUESSED_BY_THE_LIBRARY = ["jr-035", "jr-102", "jr-115", "jr-127", "jr-155", "jr-167", "jr-182", "jr-184", "jr-189"]
ONE_READING = ["jr-005", "jr-037", "jr-061", "jr-142", "jr-213", "jr-215", "jr-216", "jr-219", "jr-311", "jr-328"]


def _output(case: dict[str, Any]) -> Any:
    output = case["json_repair_output"]
    return json.loads(output) if isinstance(output, str) and output else output


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


@pytest.mark.parametrize("id_", CASES)
def test_S1_a_mended_reading_never_differs_from_the_recorded_one_and_a_plain_one_is_json(id_: str) -> None:
    case = CASES[id_]
    read = read_arguments(case["raw"], ANY)
    if isinstance(read, Arguments) and read.mended:
        assert _stripped(read.values) == _stripped(_output(case))
    elif isinstance(read, Arguments):
        assert read.values == (json.loads(case["raw"]) if case["raw"].strip() else {}) or case["raw"] == '""'
