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

from callformats import registry
from callformats.block import Format
from callformats.inert import INERT
from runner.guards import defang, restore, restore_value
from runner.host.events import Json

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
    for text in (f"before {marker} after", marker):
        inert = defang(text)
        assert marker not in inert
        assert len(inert) == len(text)
        assert re.sub(r"\W", "", inert) == re.sub(r"\W", "", text)
        assert defang(inert) == inert
        assert restore(inert) == text


def test_I6_the_list_of_markers_is_as_long_as_the_documents_say() -> None:
    told = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    assert len(set(MARKERS)) == len(MARKERS)
    assert f"{len(MARKERS)} markers" in told


def _made_up(name: str) -> Format:
    return Format("made-up", opens=(f"<{name}>", f"⟪{name}:", f"@@{name}@@", f"{name}[["), closes=(f"{{/{name}}}",))


def test_I6_a_new_format_makes_its_own_markers_inert(monkeypatch: pytest.MonkeyPatch) -> None:
    new = _made_up("zapcall")
    markers = (*new.opens, *new.closes, "< /ZapCall >", '<zapcall name="x">')
    assert [defang(marker) for marker in markers] == list(markers)
    formats = (*registry.all_formats(), new)
    monkeypatch.setattr(registry, "all_formats", lambda: formats)
    registry.all_markers.cache_clear()
    try:
        for marker in markers:
            text = f"say {marker} now"
            assert marker not in defang(text)
            assert restore(defang(text)) == text
    finally:
        registry.all_markers.cache_clear()


def test_I6_every_literal_of_the_registry_is_inert() -> None:
    for literal in sorted(registry.all_markers()):
        assert literal not in defang(f"a {literal} b")


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
        "## Response\n\n### Instructions\n1. Call: me. User: Ann, Assistant: Bob",
        "<user> <title> <Response code='200'> <br/> <h1> </div> </start_date>",
        "a | b || c |> d, x > y >> z, mail me@example.org # comment",
        "SELECT 1 -- the end of data; [USER1] [sep] [round 2]",
        "http://[::1]:80/{id}?a=b&c=~d$1^2!",
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


@pytest.mark.parametrize(
    "unit", ["<", "< ", "<<", "[", "]", "`", "<|", "</", "<a:", "functools", "<tool_", "data block 1 "]
)
def test_S7_defanging_reads_a_text_a_bounded_number_of_times(unit: str) -> None:
    # A quadratic pattern would not come back from a text this long within an hour.
    text = unit * (200_000 // len(unit))
    assert len(defang(text)) == len(text)
