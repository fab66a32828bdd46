"""F5: what a conversation remembers of summaries that nobody wrote."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from runner.context.summary_backoff import LEAST_ROOM, Patience, read

PATIENCES = st.builds(
    Patience,
    st.integers(0, 100),
    st.integers(0, 15),
    st.none() | st.integers(LEAST_ROOM, 10**6),
)


def test_F5_one_failure_may_be_chance_and_the_next_ones_are_followed_by_longer_rests() -> None:
    patience, rests = Patience(), []
    for _ in range(7):
        patience = patience.disappointed()
        rests.append(patience.rest)
    assert rests == [0, 1, 3, 7, 15, 15, 15]


def test_F5_a_rest_ends_after_so_many_compactions() -> None:
    patience = Patience().disappointed().disappointed().disappointed()
    for left in (2, 1, 0, 0):
        patience = patience.rested()
        assert patience.rest == left


def test_F5_a_request_that_took_too_long_is_asked_for_half_and_after_a_summary_for_more_again() -> None:
    slow = Patience().was_too_much(8_000)
    assert slow.limited(10_000) == 4_000 and slow.limited(3_000) == 3_000
    assert slow.was_too_much(4_000).room == 2_000
    assert slow.succeeded().room == 8_000 and slow.succeeded().failed == 0


@given(PATIENCES, st.lists(st.integers(0, 10**6), max_size=40))
def test_F5_the_room_never_falls_below_what_a_summary_needs(patience: Patience, sizes: list[int]) -> None:
    for size in sizes:
        patience = patience.was_too_much(size)
    assert patience.limited(10**9) >= LEAST_ROOM


@given(PATIENCES)
def test_F6_what_is_remembered_comes_back_as_it_was(patience: Patience) -> None:
    assert read(json.loads(json.dumps(patience.written()))) == patience


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["failed", "rest", "room"]), x),
    )
)
def test_F6_a_stored_value_of_any_shape_gives_patience_within_its_bounds(stored: object) -> None:
    patience = read(stored)  # type: ignore[arg-type]
    assert patience.failed >= 0 and 0 <= patience.rest <= 15
    assert patience.room is None or patience.room >= LEAST_ROOM
