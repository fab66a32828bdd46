"""K8: how long a model may say nothing while another one could answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.host import clock
from runner.host.deadline import Deadline
from runner.host.errors import ModelFailed, ModelTrouble
from runner.host.events import Json
from runner.models import waiting
from runner.models.fallback_order import Lineup, authorised
from runner.models.habits import Habit, Habits
from runner.models.waiting import FirstEvent, Limits, OutOfTime, Waiting, share
from tests.unit.border import context


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
