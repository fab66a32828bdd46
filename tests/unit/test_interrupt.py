"""G2: noticing a stop, without ever being in the way."""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.errors import RunCancelled
from runner.run import interrupt
from runner.run.interrupt import PollBudget, watch
from tests.unit.border import RUN_ID, Handler, context, host_over


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.floats(0, 0.4), max_size=120))
def test_G2_all_runs_together_poll_at_most_ten_times_in_any_second(pauses: list[float]) -> None:
    clock = Clock()
    budget = PollBudget(clock)
    taken = []
    for pause in pauses:
        clock.now += pause
        taken.append(clock.now + budget.turn())
    assert taken == sorted(taken)
    assert all(sum(at <= other < at + 1.0 for other in taken) <= 10 for at in taken)


def test_G2_the_eleventh_poll_of_a_second_waits_for_the_next() -> None:
    clock = Clock()
    budget = PollBudget(clock)
    assert [budget.turn() for _ in range(11)] == [0.0] * 10 + [1.0]
    clock.now = 2.5
    assert budget.turn() == 0.0


@pytest.mark.parametrize("runs", [5, 20, 50])
def test_G2_of_many_runs_each_is_polled_again_and_again(runs: int) -> None:
    """Twenty seconds of runs that ask again a second after each answer."""
    clock = Clock()
    budget = PollBudget(clock)
    waiting = [(number / runs, number) for number in range(runs)]
    polled = [0] * runs
    while (due := heapq.heappop(waiting))[0] < 20.0:
        clock.now, number = due
        answered = clock.now + budget.turn() + 0.002
        polled[number] += 1
        heapq.heappush(waiting, (answered + interrupt.INTERVAL, number))
    assert max(polled) - min(polled) <= 2
    assert min(polled) >= 3


@dataclass
class Polls:
    """What `run_get` answers, one after the other; the last one again and again."""

    script: list[object]
    seen: int = field(default=0)

    def __call__(self, _request: object) -> object:
        self.seen += 1
        return self.script[min(self.seen, len(self.script)) - 1]


RUNNING = {"run_id": RUN_ID, "status": "running"}
STOP = {**RUNNING, "cancel_requested_at": 1}


@pytest.mark.parametrize(
    "odd", [RuntimeError("gone"), ValueError("x"), TimeoutError(), {}, [], {"run_id": RUN_ID, "status": "?"}, None]
)
async def test_G2_a_poll_that_fails_or_hangs_changes_nothing_and_the_next_one_tells(
    odd: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.0)
    monkeypatch.setattr(interrupt, "_POLL_LIMIT", 0.05)
    polls = Polls([odd, RUNNING, STOP])
    host = host_over(Handler(answers={"run_get": polls}), context())
    async with asyncio.timeout(5):
        with pytest.raises(RunCancelled):
            await watch(host, PollBudget(asyncio.get_running_loop().time))
    assert polls.seen == 3


async def test_G2_a_host_that_offers_no_run_get_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.0)
    handler = Handler()
    host = host_over(handler, context(apis={}))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await watch(host, PollBudget(asyncio.get_running_loop().time))
    assert handler.requests("run_get") == []
