"""C1, C3, K8: which models a run may use, in which order, and how long one may say nothing or rubbish."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel
from langbot_plugin.api.entities.builtin.runner.resources import ModelResource

from runner.host import clock
from runner.host.deadline import Deadline
from runner.host.errors import AllModelsFailed, ModelFailed, ModelTrouble, NoUsableModel
from runner.host.events import Json
from runner.models import runaway, waiting
from runner.models.fallback_order import Lineup, ModelRef, authorised
from runner.models.habits import Habit, Habits
from runner.models.runaway import Runaway, Watch, chants, only_blanks_come
from runner.models.waiting import FirstEvent, Limits, OutOfTime, Waiting, share
from tests.unit.border import context

# C1, C3: which models a run may use, and in which order.

IDS = st.sampled_from(["a", "b", "c", "d", ""])
GRANTS = st.lists(
    st.builds(
        ModelResource,
        model_id=st.sampled_from(["a", "b", "c"]),
        operations=st.lists(st.sampled_from(["invoke", "stream", "rerank", "count_tokens"]), unique=True),
    ),
    unique_by=lambda model: model.model_id,
)


def granted(*ids: str) -> list[ModelResource]:
    return [ModelResource(model_id=an_id) for an_id in ids]


@given(st.lists(IDS), GRANTS)
def test_C1_wanted_order_each_once_and_nothing_that_is_not_granted(
    wanted: list[str], grants: list[ModelResource]
) -> None:
    usable = {
        model.model_id for model in grants if not model.operations or {"invoke", "stream"} & set(model.operations)
    }
    expected = [an_id for an_id in dict.fromkeys(wanted) if an_id in usable]
    try:
        got = [ref.id for ref in authorised(wanted, {}, grants)]
    except NoUsableModel as told:
        assert expected == [] and "AI tab" in str(told) and told.code == "runner.no_model"
    else:
        assert got == expected


@pytest.mark.parametrize(
    ("operations", "streams", "counts"),
    [
        ([], True, True),
        (["stream"], True, False),
        (["invoke"], False, False),
        (["invoke", "count_tokens"], False, True),
    ],
)
def test_C2_streaming_only_where_it_is_granted_and_no_list_is_every_operation(
    operations: list[str], streams: bool, counts: bool
) -> None:
    (ref,) = authorised(["a"], {}, [ModelResource.model_validate({"model_id": "a", "operations": operations})])
    assert (ref.streams, "count_tokens" in ref.operations) == (streams, counts)


@pytest.mark.parametrize("level", get_args(ReasoningLevel))
def test_C3_a_known_level_belongs_to_its_model_alone(level: str) -> None:
    one, two = authorised(["a", "b"], {"a": level, "z": "max"}, granted("a", "b"))
    assert (one.level, two.level) == (level, None)


@pytest.mark.parametrize("level", ["", "very much", "HIGH"])
def test_C3_an_unknown_level_is_no_level(level: str) -> None:
    (ref,) = authorised(["a"], {"a": level}, granted("a"))
    assert ref.level is None


def test_C1_the_model_that_answered_stays_and_a_failed_one_is_not_asked_again() -> None:
    lineup = Lineup(authorised(["a", "b"], {}, granted("a", "b")))
    assert lineup.current.id == "a"
    lineup.advance(ModelFailed("a", ModelTrouble.AUTH, "key"))
    assert (lineup.current.id, lineup.fallbacks_used) == ("b", 1)


def test_C1_when_none_is_left_every_failure_is_named() -> None:
    lineup = Lineup((ModelRef("a", None, frozenset()), ModelRef("b", None, frozenset())))
    lineup.advance(ModelFailed("a", ModelTrouble.AUTH, "bad key"))
    with pytest.raises(AllModelsFailed) as told:
        lineup.advance(ModelFailed("b", ModelTrouble.TIMEOUT, "slow"))
    assert "bad key" in str(told.value) and "slow" in str(told.value)
    assert [failure.model_id for failure in told.value.failures] == ["a", "b"]


# K8: how long a model may say nothing while another one could answer.


@pytest.mark.parametrize(
    ("left", "models", "seconds"),
    [(None, 2, 90.0), (300.0, 2, 90.0), (120.0, 2, 60.0), (120.0, 3, 40.0), (12.0, 3, 10.0), (-5.0, 2, 10.0)],
)
def test_K8_the_time_left_is_shared_between_ten_and_ninety_seconds(
    left: float | None, models: int, seconds: float
) -> None:
    assert share(left, models) == seconds


def first_event(
    *operations: str, models: int = 2, level: str | None = None, hidden: bool = False, habit: Habit | None = None
) -> tuple[FirstEvent, Lineup, Habits]:
    names = [f"m{number}" for number in range(1, models + 1)]
    granted = [{"model_id": name, "operations": list(operations)} for name in names]
    lineup = Lineup(authorised(names, {"m1": level} if level else {}, context(models=granted).resources.models))
    habits = Habits(None, _kept_nowhere)
    if habit is not None:
        habits.learn("m1", habit)
    return FirstEvent(lineup, Deadline(None, None), lambda: habits, thinking_hidden=hidden), lineup, habits


def _kept_nowhere(_value: Json) -> None: ...


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({}, Limits(90.0)),
        ({"hidden": True}, Limits(120.0)),
        ({"level": "low"}, Limits(120.0)),
        ({"habit": Habit(slow_start=True)}, Limits(120.0)),
        ({"models": 1}, None),
    ],
)
async def test_K8_who_may_think_unseen_gets_two_minutes_and_the_last_model_all_the_time(
    given: dict[str, Any], limits: Limits | None
) -> None:
    assert first_event(**given)[0].limits() == limits


async def test_K8_what_does_not_stream_is_not_given_up() -> None:
    assert first_event("invoke", "count_tokens")[0].limits() is None


async def test_K8_the_last_model_left_is_waited_for() -> None:
    given, lineup, _ = first_event()
    lineup.advance(ModelFailed("m1", ModelTrouble.TIMEOUT, ""))
    assert given.limits() is None


@pytest.mark.parametrize(("seconds", "slow"), [(89.0, False), (91.0, True)])
@pytest.mark.parametrize("models", [1, 2])
async def test_K8_a_slow_beginning_is_remembered(seconds: float, slow: bool, models: int) -> None:
    given, _, habits = first_event(models=models)
    given.began(seconds)
    assert habits.of("m1").slow_start is slow


async def test_K8_a_stream_that_will_not_close_does_not_hold_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_CLOSING", 0.01)
    closing, closed = asyncio.Event(), asyncio.Event()

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closing.set()
            await closed.wait()

    left: set[asyncio.Task[None]] = set()
    one = Waiting(Limits(0.01), left)
    with pytest.raises(OutOfTime) as told:
        await one.read(hangs())
    assert told.value.seconds == 0.01
    assert closing.is_set() and len(left) == 1 and one.over
    closed.set()
    await asyncio.wait(left)
    await asyncio.sleep(0)
    assert left == set()


async def test_K8_from_its_first_event_on_a_reply_has_all_the_time() -> None:
    one = Waiting(Limits(0.02), set())

    async def slow() -> None:
        one.begins()
        await asyncio.sleep(0.05)

    await one.read(slow())
    assert not one.over


async def test_S3_the_limit_of_a_step_begins_anew_at_the_first_event() -> None:
    one = Waiting(Limits(0.05, 0.01), set())

    async def slow() -> None:
        one.begins()
        await asyncio.Event().wait()

    began = clock.now()
    with pytest.raises(OutOfTime) as told:
        await one.read(slow())
    assert told.value.seconds == 0.01 and clock.now() >= began


async def test_G2_a_run_that_is_stopped_waits_until_the_stream_has_closed() -> None:
    one, ended = Waiting(Limits(60.0), set()), []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    reading = asyncio.create_task(one.read(hangs()))
    await asyncio.sleep(0.01)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert ended == [True]


async def test_Q4_a_failure_while_reading_comes_out_as_it_is() -> None:
    async def fails() -> None:
        raise ModelFailed("m1", ModelTrouble.AUTH, "no")

    with pytest.raises(ModelFailed):
        await Waiting(Limits(60.0), set()).read(fails())


@given(st.text(min_size=1, max_size=150), st.text(max_size=300))
def test_S3_a_chant_is_a_short_piece_over_and_over(piece: str, before: str) -> None:
    assert chants(before + piece * 600)


def test_S3_prose_lists_and_tables_are_no_chant() -> None:
    assert not chants("\n".join(f"| {n} | value {n * 7} |" for n in range(200)))
    assert not chants("word " * 20)
    assert not chants(" ".join(f"number {n}" for n in range(300)))


def test_S3_endless_white_space_is_noticed_behind_a_reply_only() -> None:
    assert only_blanks_come("{}" + "\n" * 500)
    assert not only_blanks_come("{}" + "\n" * 50)


def test_S3_looking_for_chants_costs_a_bounded_piece_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def look(text: str) -> bool:
        looked_at.append(len(text))
        return False

    monkeypatch.setattr(runaway, "chants", look)
    watch = Watch()
    for n in range(6_000):
        watch.feed(f"{n} ")
        assert len(watch._newest) + sum(map(len, watch._since)) <= 810
    assert max(looked_at) <= 600
    assert len(looked_at) > 100


def left_at(watch: Watch, pieces: list[str]) -> int | None:
    """How many characters had come when the reply was left."""
    came = 0
    for piece in pieces:
        came += len(piece)
        if watch.feed(piece):
            return came
    return None


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (["- Anna: KEY-1\n"] * 500, Runaway.CHANT),
        (["Facts: KEY-1."] + ["\n"] * 900, Runaway.BLANKS),
        ([f"{n} and more, " for n in range(3_000)], Runaway.LENGTH),
        (["<think>Hm.</think>"] + [f"{n} and more, " for n in range(3_000)], Runaway.LENGTH),
    ],
)
def test_F5_a_reply_that_can_be_no_summary_is_left_early(pieces: list[str], why: Runaway) -> None:
    watch = Watch(most=4_000)
    came = left_at(watch, pieces)
    assert came is not None and came <= 6_000
    assert watch.runaway is why


@pytest.mark.parametrize("opening", ["<think>", "<THINK>", "<thinking>"])
def test_F5_thoughts_before_a_summary_may_be_long(opening: str) -> None:
    thought = [opening, *(f"{n} I wonder. " for n in range(3_000)), opening.replace("<", "</")]
    assert left_at(Watch(most=1_000), [*thought, "Facts: KEY-1."]) is None


@given(st.integers(min_value=0, max_value=3_000), st.integers(min_value=1, max_value=300))
def test_F5_a_reply_within_its_length_is_never_left(most: int, size: int) -> None:
    text = "".join(f"{n} " for n in range(2_000))[:most]
    assert left_at(Watch(most=most), [text[at : at + size] for at in range(0, len(text), size)]) is None


def test_F5_measuring_a_long_thought_takes_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def stripped(text: str, *, anywhere: bool) -> str:
        read.append(len(text))
        return ""

    monkeypatch.setattr(runaway, "without_thoughts", stripped)
    left_at(Watch(most=100), ["<think>", *(f"{n} so. " for n in range(60_000))])
    assert sum(read) <= 6 * max(read)
