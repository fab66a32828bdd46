"""F6, C7, L9: what is remembered, when it is believed, and when it is written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.context.checkpoint import MAX_BYTES, MAX_GAPS, Checkpoint, Gap, merge, merged_gaps, order, read, write
from runner.context.coverage import Fold, closed, folded, subtract
from runner.context.save_marks import FIRST_REST, LONGEST_REST, MOST, SaveMarks
from runner.conversation.units import Span
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json
from tests.context.conversations import GOOD, Model, Setting, history, user, view

# F6, C7: what is remembered is believed only when it is ours and whole, and merging loses no row.

WHOLE = Checkpoint(
    "facts", "12", "90", (Gap("50", "61"), Gap(None, "12")), 20, 3, 1_700_000_000.5, {"m": 8_000}, {"sent": ["a"]}
)


def stored(**changes: Json) -> Json:
    value = write(WHOLE)
    assert isinstance(value, dict)
    return {**value, **changes}


def rows_of(gaps: tuple[Gap, ...], highest: int = 130) -> set[int]:
    return {
        row
        for gap in gaps
        for row in range(0 if gap.after is None else order(gap.after) + 1, min(order(gap.before), highest))
    }


def test_F6_a_checkpoint_comes_back_as_it_was_written() -> None:
    assert read(json.loads(json.dumps(write(WHOLE)))) == WHOLE
    assert read(write(Checkpoint())) == Checkpoint()
    assert read(write(Checkpoint(windows={"m": 900}))) == Checkpoint(windows={"m": 900})


HOSTILE: tuple[Json, ...] = (
    None,
    "",
    [],
    {},
    17,
    {"summary": "x"},
    {"type": "other runner", "version": 1},
    stored(version=0),
    stored(version=2),
    stored(version="1"),
    stored(version=True),
    stored(summary=None),
    stored(summary=["facts"]),
    stored(summary=""),
    stored(summary="x" * 200_000),
    stored(covers_until=None),
    stored(covers_until=90),
    stored(covers_until="90; drop table"),
    stored(covers_until="-1"),
    stored(covers_until="٣"),
    stored(covers_until="9" * 40),
    stored(covers_from="91"),
    stored(gaps=[{"after": "50", "before": "200"}]),
    stored(gaps=[{"after": "60", "before": "50"}]),
    stored(gaps=[{"after": None, "before": "12"}, {"after": "50", "before": "61"}]),
    stored(gaps=[{"before": "12"}]),
    stored(gaps=[{"after": str(n), "before": str(n + 1)} for n in range(80, 40, -1)]),
    stored(gaps={"after": None}),
    stored(time="now"),
    stored(time=-1),
    stored(windows={"m": "8000"}),
    stored(windows={"m": -5}),
    stored(windows={"": 5}),
    stored(windows=[1]),
    stored(notes=[1]),
    stored(extra=1),
)


@pytest.mark.parametrize("value", HOSTILE)
def test_F6_a_broken_foreign_or_outdated_checkpoint_is_ignored(value: Json) -> None:
    assert read(value) is None


def test_F6_a_deeply_nested_value_is_ignored() -> None:
    value: Json = {}
    for _ in range(3_000):
        value = {"notes": value}
    assert read(value) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=12), children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*stored()]) if isinstance(stored(), dict) else st.text(), json_values))  # type: ignore[misc]
def test_F6_no_stored_value_whatever_raises(changes: dict[str, Json]) -> None:
    result = read(stored(**changes))
    assert result is None or read(write(result)) is not None


@pytest.mark.parametrize("character", ["x", "密", "😀", '"', "\n"])
def test_F6_what_is_written_stays_below_256_kib(character: str) -> None:
    large = replace(
        WHOLE,
        summary="s" + character * 300_000,
        notes={str(number): character * 9_000 for number in range(60)},
        windows={f"model {number}": 1_000 for number in range(500)},
    )
    value = write(large)
    assert len(json.dumps(value, ensure_ascii=False).encode()) < MAX_BYTES
    again = read(value)
    assert again is not None
    assert "model 499" in again.windows and "59" in again.notes


def test_F6_a_lone_surrogate_does_not_stop_the_writing() -> None:
    again = read(json.loads(json.dumps(write(replace(WHOLE, summary="a\ud800b\0c")))))
    assert again is not None and again.summary == "abc"


def test_C7_the_smaller_refused_size_is_the_window() -> None:
    assert Checkpoint().learn("m", 9_000).learn("m", 7_000).learn("m", 8_000).windows == {"m": 7_000}


def test_F6_a_conversation_reset_during_the_run_leaves_nothing_behind() -> None:
    assert merge(WHOLE, None, replace(WHOLE, covers_until="99")) is None


def test_F6_the_first_checkpoint_is_written_and_an_unchanged_one_is_replaced() -> None:
    newer = replace(WHOLE, covers_until="99")
    assert merge(None, None, newer) == newer
    assert merge(WHOLE, WHOLE, newer) == newer


def test_F6_of_two_runs_at_once_the_one_that_reached_further_stays_and_windows_are_kept() -> None:
    theirs = replace(WHOLE, covers_until="120", summary="theirs", windows={"m": 7_000, "n": 4_000})
    ours = replace(WHOLE, covers_until="100", summary="ours", windows={"m": 6_000}, notes={"told": True})
    merged = merge(WHOLE, theirs, ours)
    assert merged is not None
    assert (merged.summary, merged.covers_until) == ("theirs", "120")
    assert merged.windows == {"m": 6_000, "n": 4_000}
    assert merged.notes == {"sent": ["a"], "told": True}
    assert merge(WHOLE, ours, theirs) is not None
    assert merge(WHOLE, theirs, replace(WHOLE, windows={})) is None


def test_C7_a_window_that_this_run_forgot_stays_forgotten_unless_another_run_learned_it_anew() -> None:
    base = replace(WHOLE, windows={"m": 7_000, "n": 5_000})
    theirs = replace(base, covers_until="120")
    merged = merge(base, theirs, base.forget("m"))
    assert merged is not None and merged.windows == {"n": 5_000}
    assert merge(base, theirs.learn("m", 6_000), base.forget("m")) is None


spans_ = st.tuples(st.integers(0, 120), st.integers(0, 12)).map(lambda p: Span(str(p[0]), str(p[0] + p[1])))


@given(st.lists(spans_, max_size=30))
def test_F6_joining_gaps_never_loses_a_row(spans: list[Span]) -> None:
    gaps = tuple(
        Gap(str(order(span.first) - 1) if span.first != "0" else None, str(order(span.last) + 1)) for span in spans
    )
    joined = merged_gaps(gaps)
    assert rows_of(gaps) <= rows_of(joined)
    assert len(joined) <= MAX_GAPS
    assert len(joined) == MAX_GAPS or rows_of(gaps) == rows_of(joined)


@given(st.lists(spans_, max_size=10), spans_)
def test_F6_folding_takes_exactly_its_rows_out_of_the_gaps(spans: list[Span], told: Span) -> None:
    gaps = merged_gaps(
        tuple(
            Gap(str(order(span.first) - 1) if span.first != "0" else None, str(order(span.last) + 1)) for span in spans
        )
    )
    left = subtract(gaps, order(told.first), order(told.last))
    assert rows_of(left) == rows_of(gaps) - set(range(order(told.first), order(told.last) + 1))


def test_F6_a_fold_covers_what_was_told_and_records_what_was_left() -> None:
    fold = Fold("s", told=(Span("31", "40"),), left=(Span("21", "30"),), unread=(Gap(None, "21"),))
    made = folded(None, fold, time=5.0)
    assert (made.covers_from, made.covers_until) == ("31", "40")
    assert made.gaps == (Gap(None, "31"),)
    assert read(write(made)) == made


def test_F6_later_folds_shrink_the_gap_until_it_is_gone() -> None:
    made = folded(None, Fold("s", (Span("31", "40"),), unread=(Gap(None, "31"),)), time=1.0)
    made = folded(made, Fold("t", (Span("12", "30"),)), time=2.0)
    assert (made.covers_from, made.covers_until, made.gaps) == ("12", "40", (Gap(None, "12"),))
    made = folded(made, Fold("u", (Span("3", "11"),), empty=(Gap(None, "3"),)), time=3.0)
    assert made.gaps == ()
    assert made.summaries == 3


def test_F6_numbers_no_row_of_this_chat_has_are_no_gap() -> None:
    made = folded(None, Fold("s", (Span("131", "140"),), unread=(Gap(None, "131"),)), time=1.0)
    made = folded(made, Fold("t", (Span("112", "125"),)), time=2.0)
    assert made.gaps == (Gap(None, "112"),)


def test_F6_a_reply_read_without_its_question_stays_in_the_gap_before_it() -> None:
    made = folded(None, Fold("s", (Span("31", "40"),), unread=(Gap(None, "28"),)), time=1.0)
    assert made.gaps == (Gap(None, "31"),)


def test_F6_rows_that_nobody_read_stay_in_a_gap_when_rows_before_and_behind_them_are_told_together() -> None:
    before = Checkpoint(summary="s", covers_from="1", covers_until="32", summaries=1)
    made = folded(before, Fold("t", (Span("33", "328"),), unread=(Gap("132", "303"),)), time=2.0)
    assert (made.covers_until, made.gaps) == ("328", (Gap("132", "303"),))
    assert read(write(made)) == made


def test_F6_rows_newer_than_all_that_is_told_need_no_gap() -> None:
    before = Checkpoint(summary="s", covers_from="9", covers_until="32", gaps=(Gap(None, "9"),), summaries=1)
    made = folded(before, Fold("t", (Span("4", "8"),), unread=(Gap("32", "90"),)), time=2.0)
    assert (made.covers_until, made.gaps) == ("32", (Gap(None, "4"),))
    assert read(write(made)) == made


def test_F6_a_digest_leaves_its_rows_in_the_gap() -> None:
    made = folded(None, Fold("digest", told=(), left=(Span("1", "8"),)), time=1.0)
    assert made.covers_until == "8"
    assert rows_of(made.gaps) == set(range(1, 9))
    assert read(write(made)) == made


def test_F6_rows_removed_by_retention_close_their_gap() -> None:
    assert closed(WHOLE, (Gap(None, "12"),)).gaps == (Gap("50", "61"),)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5), st.booleans()), min_size=1, max_size=25),
)
def test_F6_every_row_is_told_in_a_gap_or_newer_than_the_checkpoint(steps: list[tuple[int, int, bool]]) -> None:
    made: Checkpoint | None = None
    told: set[int] = set()
    at = 0
    for taken, left, fill in steps:
        spans = [Span(str(row), str(row)) for row in range(at + 1, at + taken + left + 1)]
        at += taken + left
        gap_span: tuple[Span, ...] = ()
        if fill and made is not None and made.gaps:
            row = order(made.gaps[0].before) - 1
            gap_span = (Span(str(row), str(row)),)
        kept = (*gap_span, *spans[left:])
        told |= {order(span.first) for span in kept}
        made = folded(made, Fold("s", kept, tuple(spans[:left])), time=0.0)
        assert read(write(made)) == made
        assert set(range(1, at + 1)) <= told | rows_of(made.gaps, 500)
        assert not {order(span.first) for span in kept} & rows_of(made.gaps, 500)


# F6: the checkpoint is written where it changed, and undoes nothing of others.


class Store:
    """The state key, with failures."""

    def __init__(self, value: Json = None, *, fails: str = "") -> None:
        self.value, self.fails, self.writes = value, fails, 0
        self.hidden = False
        self.asked: list[str] = []

    async def load(self) -> Json:
        if self.fails == "load":
            raise HostCallFailed("state_get", HostFailure.TIMEOUT, "late")
        return self.value

    async def store(self, value: Json) -> None:
        if self.fails == "store":
            raise HostCallFailed("state_set", HostFailure.REFUSED, "no")
        self.value = value
        self.writes += 1

    async def holds(self, cursor: str) -> bool:
        self.asked.append(cursor)
        return not self.hidden


async def test_F6_the_checkpoint_is_written_once_after_a_second_look() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 1
    assert read(store.value) == setting.context.checkpoint


async def test_F6_a_reset_during_the_first_compaction_leaves_nothing_behind() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    store.hidden = True
    await setting.context.save(store.load, store.store, store.holds)
    checkpoint = setting.context.checkpoint
    assert checkpoint is not None and store.asked == [checkpoint.covers_until]
    assert (store.writes, store.value) == (0, None)
    assert "reset" in setting.lines[-1]


async def test_F6_after_a_reset_what_another_run_stored_since_does_not_let_old_words_back_in() -> None:
    setting = Setting(Model(GOOD), checkpoint=Checkpoint(GOOD, "1", "1"))
    await setting.fit(view(*history(60), user("now")))
    store = Store(write(Checkpoint(windows={"m1": 9_000})))
    store.hidden = True
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 0
    assert "reset" in setting.lines[-1]


async def test_F6_what_changed_after_a_save_is_saved_too_and_nothing_twice() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store()
    await setting.context.save(store.load, store.store, store.holds)
    assert not await setting.context.save(store.load, store.store, store.holds)
    setting.context.note("offered", ["read"])
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored == setting.context.checkpoint and stored is not None and stored.summary
    assert (stored.notes, store.writes) == ({"offered": ["read"]}, 2)


async def test_J5_a_second_save_does_not_undo_what_another_run_reached_meanwhile() -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store(write(Checkpoint("Theirs reaches further.", "1", "999")))
    await setting.context.save(store.load, store.store, store.holds)
    setting.context.note("offered", ["read"])
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored is not None and (stored.covers_until, stored.notes) == ("999", {"offered": ["read"]})


async def test_F6_other_things_are_remembered_beside_the_summary() -> None:
    setting = Setting(checkpoint=Checkpoint(GOOD, "1", "9", notes={"names": {"7": "Ann"}}))
    setting.context.note("offered", ["read"])
    store = Store(write(Checkpoint(GOOD, "1", "9", notes={"names": {"7": "Ann"}})))
    await setting.context.save(store.load, store.store, store.holds)
    stored = read(store.value)
    assert stored is not None and stored.summary == GOOD
    assert stored.notes == {"names": {"7": "Ann"}, "offered": ["read"]}


async def test_F6_a_run_that_changed_nothing_neither_reads_nor_writes() -> None:
    setting = Setting(checkpoint=Checkpoint(GOOD, "1", "9"))
    await setting.fit(view(user("hi")))
    store = Store(fails="load")
    await setting.context.save(store.load, store.store, store.holds)
    assert setting.lines == []


@pytest.mark.parametrize("fails", ["load", "store"])
async def test_Q4_a_state_that_fails_costs_a_log_line_only(fails: str) -> None:
    setting = Setting(Model(GOOD))
    await setting.fit(view(*history(60), user("now")))
    store = Store(fails=fails)
    await setting.context.save(store.load, store.store, store.holds)
    assert store.writes == 0
    assert "not saved" in setting.lines[-1]


# L9: chats whose checkpoint cannot be saved are not summarised anew in each run.


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_L9_one_failure_may_be_chance_and_further_ones_rest_longer_and_longer() -> None:
    clock = Clock()
    marks = SaveMarks(clock)
    assert marks.may_ask("a")
    marks.heard("a", saved=False)
    assert marks.may_ask("a")
    rest = FIRST_REST
    for _ in range(12):
        marks.heard("a", saved=False)
        assert not marks.may_ask("a")
        assert marks.may_ask("b")
        clock.now += rest - 1
        assert not marks.may_ask("a")
        clock.now += 1
        assert marks.may_ask("a")
        rest = min(2 * rest, LONGEST_REST)


def test_L9_a_checkpoint_that_was_saved_ends_the_rest() -> None:
    marks = SaveMarks(Clock())
    for _ in range(5):
        marks.heard("a", saved=False)
    marks.heard("a", saved=True)
    assert marks.may_ask("a")
    marks.heard("a", saved=False)
    assert marks.may_ask("a"), "counted anew"


def test_I1_the_marks_are_few_and_hold_nothing_of_a_chat() -> None:
    marks = SaveMarks(Clock())
    for number in range(3 * MOST):
        for _ in range(2):
            marks.heard(f"chat of Ann {number}", saved=False)
    assert len(marks._marks) == MOST
    assert "Ann" not in str(marks._marks)
    assert not marks.may_ask(f"chat of Ann {3 * MOST - 1}")
