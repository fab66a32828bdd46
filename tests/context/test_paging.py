"""B5, F6: which pages of history are read, in how few calls, and that no row is overlooked."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.context.checkpoint import Checkpoint, Gap, order
from runner.context.paging import EXTRA_PAGES, PAGE, History, PageCall, Paging


@dataclass(frozen=True)
class Row:
    cursor: str


class Transcript:
    """The Host's paging over rows with these sequence numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = sorted(numbers)
        self.calls: list[PageCall] = []

    def page(self, call: PageCall) -> tuple[tuple[Row, ...], bool]:
        self.calls.append(call)
        found = self.numbers
        if call.after is not None:
            found = [number for number in found if number > int(call.after)]
        else:
            found = [n for n in reversed(found) if call.before is None or n < int(call.before)]
        limit = min(call.limit, 100)
        return tuple(Row(str(number)) for number in found[:limit]), len(found) > limit


def read_all(paging: Paging[Row], host: Transcript, failing: frozenset[int] = frozenset()) -> History[Row]:
    rounds = 0
    while calls := paging.calls():
        rounds += 1
        assert rounds < 20, "paging does not end"
        for call in calls:
            if len(host.calls) in failing:
                host.calls.append(call)
                paging.fail(call)
            else:
                rows, has_more = host.page(call)
                paging.take(call, rows, has_more=has_more)
    return paging.history()


def paging(
    checkpoint: Checkpoint | None = None,
    *,
    limit: int = 50,
    room: int = 10_000,
    current: int = -1,
    stays: bool = True,
) -> Paging[Row]:
    ignored = str(current)
    return Paging(
        checkpoint, limit=limit, room=room, size=lambda _: 10, ignore=lambda row: row.cursor == ignored, stays=stays
    )


def numbers(rows: tuple[Row, ...]) -> list[int]:
    return [int(row.cursor) for row in rows]


def after(covered: int, *gaps: Gap) -> Checkpoint:
    return Checkpoint("s", str(min(covered, 1)), str(covered), gaps)


def test_Q1_a_short_history_takes_one_call_and_leaves_out_the_current_message() -> None:
    host = Transcript(list(range(1, 22)))
    history = read_all(paging(current=21), host)
    assert numbers(history.recent) == list(range(1, 21))
    assert history == History(recent=history.recent)
    assert host.calls == [PageCall(51)]


def test_Q1_an_empty_history_takes_one_call() -> None:
    host = Transcript([])
    assert read_all(paging(), host) == History()
    assert len(host.calls) == 1


def test_F6_rows_older_than_the_fetch_limit_are_read_to_be_folded() -> None:
    host = Transcript(list(range(1, 121)))
    history = read_all(paging(current=120), host)
    assert numbers(history.recent) == list(range(95, 120))
    assert numbers(history.leaving) == list(range(1, 95))
    assert history.unread == ()


def test_Q1_four_hundred_rows_cold_are_read_in_few_calls_and_the_rest_is_recorded() -> None:
    host = Transcript(list(range(1, 401)))
    history = read_all(paging(current=400, room=1_000), host)
    assert len(host.calls) == 2
    oldest = numbers(history.leaving)[0]
    assert numbers(history.leaving + history.recent) == list(range(oldest, 400))
    assert history.unread == (Gap(None, str(oldest)),)


def test_F6_after_a_checkpoint_history_is_paged_forward_in_one_call() -> None:
    host = Transcript(list(range(1, 60)))
    history = read_all(paging(after(40), current=59), host)
    assert host.calls == [PageCall(PAGE, after="40")]
    assert numbers(history.recent) == list(range(41, 59))
    assert not history.leaving


def test_F6_the_newest_gap_is_read_beside_the_newest_rows_without_waiting_for_them() -> None:
    reading = paging(after(580, Gap(None, "301")))
    assert reading.calls() == (PageCall(PAGE, after="580"), PageCall(PAGE, before="301"))


def test_F6_a_page_of_the_gap_stops_at_the_gaps_other_end() -> None:
    host = Transcript(list(range(1, 600)))
    history = read_all(paging(after(580, Gap("290", "301"))), host)
    assert numbers(history.older) == list(range(291, 301))
    assert history.empty == (Gap("290", "291"),)


def test_F6_a_gap_whose_rows_are_gone_is_said_to_be_empty() -> None:
    history = read_all(paging(after(580, Gap(None, "301"))), Transcript(list(range(400, 600))))
    assert history.older == ()
    assert history.empty == (Gap(None, "301"),)


def test_F6_a_tail_that_outgrew_the_limit_falls_to_half_of_it() -> None:
    history = read_all(paging(after(40)), Transcript(list(range(1, 93))))
    assert numbers(history.recent) == list(range(68, 93))
    assert numbers(history.leaving) == list(range(41, 68))


def test_F6_where_no_fold_can_be_stored_the_whole_limit_stays() -> None:
    history = read_all(paging(stays=False), Transcript(list(range(1, 121))))
    assert numbers(history.recent) == list(range(71, 121))
    assert numbers(history.leaving) == list(range(1, 71))


def test_F6_far_more_new_rows_than_pages_still_give_the_newest_and_record_the_rest() -> None:
    host = Transcript(list(range(1, 3_001)))
    history = read_all(paging(after(40)), host)
    assert len(host.calls) <= 1 + EXTRA_PAGES
    assert numbers(history.recent)[-1] == 3_000
    (gap,) = history.unread
    read = numbers(history.leaving + history.recent)
    assert {*read, *range(order(gap.after or "0") + 1, order(gap.before))} == set(range(41, 3_001))


def test_F6_a_limit_above_one_page_is_read_in_several() -> None:
    host = Transcript(list(range(1, 261)))
    history = read_all(paging(limit=250), host)
    assert numbers((*history.leaving, *history.recent)) == list(range(1, 261))
    assert all(call.limit <= PAGE for call in host.calls)


@pytest.mark.parametrize("failing", [{0}, {1}, {0, 1}, {0, 1, 2, 3}])
def test_Q4_failed_pages_leave_what_was_read_and_lose_no_row(failing: set[int]) -> None:
    host = Transcript(list(range(1, 600)))
    history = read_all(paging(after(560, Gap(None, "301"))), host, frozenset(failing))
    assert len(host.calls) <= 1 + EXTRA_PAGES
    if 0 in failing and 2 not in failing:
        assert numbers(history.recent)[-1] == 599


def test_Q4_when_forward_paging_fails_the_newest_rows_are_read_backward_and_covered_ones_left_out() -> None:
    host = Transcript(list(range(1, 600)))
    history = read_all(paging(after(580)), host, frozenset({0}))
    assert numbers(history.recent) == list(range(581, 600))
    assert history.unread == ()


@given(
    st.sets(st.integers(1, 900), max_size=400),
    st.none() | st.integers(1, 900),
    st.integers(1, 220),
    st.integers(0, 3_000),
    st.sets(st.integers(0, 8), max_size=3),
)
def test_F6_every_row_after_the_checkpoint_is_read_or_recorded_as_unread(
    rows: set[int], until: int | None, limit: int, room: int, failing: set[int]
) -> None:
    host = Transcript(list(rows))
    checkpoint = None if until is None else after(until)
    history = read_all(paging(checkpoint, limit=limit, room=room), host, frozenset(failing))
    assert len(host.calls) <= -(-(limit + 1) // PAGE) + EXTRA_PAGES
    read = numbers(history.leaving + history.recent)
    assert read == sorted(set(read))
    assert len(history.recent) <= limit
    if not read:
        return
    recorded = {row for gap in history.unread for row in rows if order(gap.after or "0") < row < order(gap.before)}
    wanted = {row for row in rows if row > (until or 0)}
    # What is neither read nor recorded is newer than all that was read, so a fold cannot reach it.
    assert all(row > max(read) for row in wanted - recorded - set(read))
    assert recorded.isdisjoint(read)
    if not failing and rows:
        assert max(read) == max(rows)
