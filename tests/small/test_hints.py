"""S6: advice that is given once a conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.host.events import Json
from runner.small.answers import Done
from runner.small.hints import CUT_SHORT, LOOK_AFTER, Hints

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
