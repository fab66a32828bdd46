"""What is remembered of each model between the runs of a conversation."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from runner.host.events import Json
from runner.models.habits import Habit, Habits

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


def test_K7_what_one_run_learns_the_next_one_reads() -> None:
    noted: list[Json] = []
    seen = Habit(numbered_ids=True, slow_start=True, helped={"all tools": 7.0}, thinks=True)
    Habits(None, noted.append).learn("m1", seen)
    stored = json.loads(json.dumps(noted[-1]))
    assert Habits(stored, noted.append).of("m1") == seen
    assert Habits(stored, noted.append).of("m2") == Habit()


def test_K7_nothing_is_noted_that_is_no_news() -> None:
    noted: list[Json] = []
    habits = Habits(None, noted.append)
    habits.learn("m1", Habit())
    habits.learn("m1", Habit(slow_start=True))
    habits.learn("m1", Habit(slow_start=True))
    assert len(noted) == 1


def test_K7_of_many_models_the_newest_are_remembered() -> None:
    noted: list[Json] = []
    habits = Habits(None, noted.append)
    for number in range(40):
        habits.learn(f"m{number}", Habit(slow_start=True))
    again = Habits(noted[-1], noted.append)
    assert [again.of(f"m{number}").slow_start for number in (0, 23, 24, 39)] == [False, False, True, True]


@given(ANY_JSON, st.dictionaries(st.sampled_from(["numbered_ids", "slow_start", "helped", "thinks"]), ANY_JSON))
def test_K7_a_stored_value_of_any_shape_is_read_without_harm(stored: Json, habit: dict[str, Json]) -> None:
    values: tuple[Json, ...] = (stored, {"m1": stored}, {"m1": habit})
    for value in values:
        known = Habits(value, lambda _: None).of("m1")
        assert isinstance(known.numbered_ids, bool)
        assert isinstance(known.thinks, bool)
        assert all(isinstance(time, float) for time in known.helped.values())
