"""S5: which lines of a console or log are new, and what each is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.small.console import Line, labelled, lines_of, overlap

LINES = st.lists(st.sampled_from([Line("a"), Line("b"), Line("a", "error")]), max_size=12)


@given(LINES, LINES)
def test_S5_what_was_told_before_and_stands_at_the_start_is_known(before: list[Line], new: list[Line]) -> None:
    now = [*before, *new]
    assert overlap(before, now) >= len(before)


@given(LINES, LINES)
def test_S5_the_known_part_is_the_longest_end_of_before_that_begins_now(before: list[Line], now: list[Line]) -> None:
    longest = max(k for k in range(min(len(before), len(now)) + 1) if before[len(before) - k :] == now[:k])
    assert overlap(before, now) == longest


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("", []),
        ("\n  one\r\n\n two  words ", [Line("one"), Line("two words")]),
        ("[error] no JSON", [Line("[error] no JSON")]),
        ('[{"type": "ERROR", "text": "a\\nb"}, {"message": "c"}]', [Line("a b", "error"), Line("c")]),
        ('{"logs": "one\\ntwo", "session": "s1"}', [Line("one"), Line("two")]),
        ('{"messages": [{"level": "info", "msg": "x"}]}', [Line("x", "info")]),
        ('["one", "two"]', [Line("one"), Line("two")]),
        ("[]", []),
        ('[{"text": "cut off', []),
        ("[" * 100_000, []),
        ('{"a": ' * 100_000, []),
    ],
    ids=str,
)
def test_S5_entries_are_read_from_text_and_from_json(body: str, lines: list[Line]) -> None:
    assert list(lines_of(body)) == lines


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_S5_any_json_is_read(value: Any) -> None:
    assert all("\n" not in line.text for line in lines_of(json.dumps(value)))


@pytest.mark.parametrize(
    ("line", "label"),
    [
        (Line("x", "error"), "error: x"),
        (Line("x", "pageerror"), "exception: x"),
        (Line("Really?", "confirm"), "dialog: Really?"),
        (Line("error in a log line", "info"), None),
        (Line("[alert] Hello"), "dialog: [alert] Hello"),
        (Line("12:00 ERROR no route"), "error: 12:00 ERROR no route"),
        (Line("Traceback (most recent call last):"), "exception: Traceback (most recent call last):"),
        (Line("ValueError: bad"), "exception: ValueError: bad"),
        (Line("[error] ValueError: bad"), "error: [error] ValueError: bad"),
        (Line("0 errors"), None),
        (Line("terror"), None),
        (Line("all fine"), None),
    ],
    ids=str,
)
def test_S5_a_line_is_called_what_it_is(line: Line, label: str | None) -> None:
    assert labelled(line) == label
