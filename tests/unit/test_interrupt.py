"""G2: noticing a stop, without ever being in the way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import interrupt
from runner.errors import RunCancelled
from runner.interrupt import PollBudget, watch
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
        if budget.take():
            taken.append(clock.now)
    assert all(sum(at <= other < at + 1.0 for other in taken) <= 10 for at in taken)


def test_G2_a_poll_is_allowed_again_once_a_second_has_passed() -> None:
    clock = Clock()
    budget = PollBudget(clock)
    assert [budget.take() for _ in range(11)] == [True] * 10 + [False]
    clock.now = 1.0
    assert budget.take()


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
