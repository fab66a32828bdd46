"""S7: hostile text becomes inert, stays readable, and comes back in a call's arguments."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.events import Json
from runner.guards import defang, frame, restore, restore_value, unframe
from runner.guards.markers import INERT

CASES = Path(__file__).parent / "cases" / "chat_template_markers.jsonl"
MARKERS = [json.loads(line)["marker"] for line in CASES.read_text(encoding="utf-8").splitlines()]
MORE_MARKERS = [
    "</s>",
    "<bos>",
    "<<SYS>>",
    "]~b]",
    "[e~[",
    "]<]minimax[>[",
    "```tool_code",
    "functools[",
    "<function=get_time>",
    '<invoke name="x">',
    "<TOOL_CALL>",
    "< /tool_call >",
    "<mm:think>",
    "<|tool▁call▁begin|>",
    "[TOOL_CALLS]",
    "[tool_calls]",
    "[END_TOOL_REQUEST]",
    "<unused42>",
    "<invokename=",
    '<functionname="x">',
    "<｜DSML｜invoke",
    "</｜DSML｜invoke>",
]
PIECES = [
    *MARKERS,
    *MORE_MARKERS,
    "<",
    "|",
    ">",
    "[",
    "]",
    "/",
    "`",
    "``",
    "tool_call",
    "functools",
    " ",
    "\n",
    "SYS",
    "a",
]

hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=30).map("".join)
without_inert_forms = hostile.filter(lambda text: not set(text) & set(INERT.values()))


@pytest.mark.parametrize("marker", [*MARKERS, *MORE_MARKERS])
def test_S7_every_known_marker_becomes_inert_and_stays_readable(marker: str) -> None:
    inert = defang(f"before {marker} after")
    assert marker not in inert
    assert len(inert) == len(f"before {marker} after")
    assert re.sub(r"\W", "", inert) == re.sub(r"\W", "", f"before{marker}after")


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_S7_a_tokenizer_that_normalises_does_not_bring_a_marker_back(
    form: Literal["NFC", "NFD", "NFKC", "NFKD"],
) -> None:
    for marker in [*MARKERS, *MORE_MARKERS]:
        assert unicodedata.normalize(form, marker) not in unicodedata.normalize(form, defang(marker))


@pytest.mark.parametrize(
    "text",
    [
        "if a < b and b > c: x[0] = y[1]",
        "map <|> choice, f <| g x",
        "<p>paragraph</p> <table><tr><td>1</td></tr></table> <strong>s</strong>",
        "usage: tool [args] [--prefix]",
        "[1, 2, 3] and [link](https://example.org) and - [ ] todo",
        "```python\nprint(1)\n```",
        "List<String> x = new ArrayList<>(); a << 2 >> 1",
        "the functions of a thinking tool_call",
    ],
)
def test_S7_ordinary_text_and_code_is_not_touched(text: str) -> None:
    assert defang(text) == text


@given(hostile)
def test_S7_defanging_twice_changes_nothing(text: str) -> None:
    assert defang(defang(text)) == defang(text)


@given(without_inert_forms)
def test_S7_inert_forms_are_turned_back(text: str) -> None:
    assert restore(defang(text)) == text


def test_S7_arguments_are_turned_back_at_any_depth() -> None:
    value: Json = {"path": "a.txt", "edits": [{"old": defang("<tool_call>"), "n": 3}, None, defang("[INST]")]}
    assert restore_value(value) == {"path": "a.txt", "edits": [{"old": "<tool_call>", "n": 3}, None, "[INST]"]}


@given(hostile | st.integers(1, 30).map(lambda n: f"--- End of  data block {n} ---\n" * 3 + "data block 1"), st.text())
def test_S7_a_framed_text_cannot_end_its_frame(text: str, source: str) -> None:
    framed = frame(text, source)
    first, *body, last = framed.split("\n")
    number = re.fullmatch(r"--- end of data block (\d+) ---", last)
    assert number is not None
    assert "\n".join(body) == defang(text)
    assert not re.search(rf"data\s+block\s+{number[1]}(?!\d)", "\n".join(body), re.IGNORECASE)
    assert defang(first) == first


@given(hostile, st.text())
def test_S7_a_frame_can_be_taken_off_and_what_has_none_stays(text: str, source: str) -> None:
    assert unframe(frame(text, source)) == defang(text)
    assert unframe(f"x{frame(text, source)}") == f"x{frame(text, source)}"


@pytest.mark.parametrize(
    "unit", ["<", "< ", "<<", "[", "]", "`", "<|", "</", "<a:", "functools", "<tool_", "data block 1 "]
)
def test_S7_defanging_reads_a_text_a_bounded_number_of_times(unit: str) -> None:
    # A quadratic pattern would not come back from a text this long within an hour.
    text = unit * (200_000 // len(unit))
    assert len(defang(text)) == len(text)
