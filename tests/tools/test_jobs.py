"""S4: what becomes a job, how its output is asked for, and that nothing outlives the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.events import Json
from runner.tools.catalogue import Catalogue
from runner.tools.execute import CALLS_PER_RUN, Executor, Outcome, ToolSlots
from runner.tools.jobs import JOB_ENTRY, MOST_OPEN, Jobs
from runner.tools.listening import MOST_PORTS, listening_ports
from runner.tools.prepare import WantedCall
from runner.tools.results import ErrorCode, Renderer
from tests.tools.offers import catalogue, offer

TOOLS = catalogue(
    offer("work"), offer("activate", "skill"), offer("event_kick_member", "platform"), offer("event_reply", "platform")
).with_own(JOB_ENTRY)


class World:
    """Tools that end when they are let go."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.open = 0
        self.most = 0
        self.calls = 0
        self.jobs = Jobs()
        self.news = asyncio.Event()
        self.executor = self.executor_with()

    def executor_with(self, **given: Any) -> Executor:
        made: dict[str, Any] = {"call_tool": self.call, "slots": ToolSlots(), **given}
        return Executor(
            renderer=Renderer(4_000),
            on_event=lambda _event: self.news.set(),
            jobs=self.jobs,
            soft_seconds=0.01,
            **made,
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, looking whenever a call begins or has an answer."""
        async with asyncio.timeout(10):
            while not holds():
                self.news.clear()
                await self.news.wait()

    async def call(self, _name: str, _values: dict[str, Json]) -> object:
        self.calls += 1
        self.open += 1
        self.most = max(self.most, self.open)
        self.news.set()
        try:
            await self.gate.wait()
        finally:
            self.open -= 1
        return "done"

    async def run(self, *calls: WantedCall, tools: Catalogue = TOOLS) -> tuple[Outcome, ...]:
        return await self.executor.batch(calls, tools).run()


def call(number: int, name: str = "work", arguments: str = "{}") -> WantedCall:
    return WantedCall(f"c{number}", name, arguments)


async def test_S4_a_job_ends_with_the_run_and_leaves_no_task() -> None:
    world, before = World(), asyncio.all_tasks()
    async with world.jobs.kept():
        (outcome,) = await world.run(call(1))
        assert outcome.rendered.pending
        assert world.open == 1
    assert world.open == 0
    assert [job.id for job in world.jobs.without_result] == ["job_1"]
    assert asyncio.all_tasks() == before


async def test_S4_a_job_ends_with_a_run_that_fails_or_is_cancelled() -> None:
    world = World()
    with pytest.raises(ExceptionGroup):
        async with world.jobs.kept():
            await world.run(call(1))
            raise ValueError("the run fell over")
    assert world.open == 0

    async def cancelled() -> None:
        async with world.jobs.kept():
            await world.run(call(2))
            await asyncio.Event().wait()

    world = World()
    run = asyncio.create_task(cancelled())
    await world.until(lambda: world.jobs.any)
    run.cancel()
    await asyncio.wait({run})
    assert run.cancelled()
    assert world.open == 0


async def test_D9_a_batch_that_is_cancelled_takes_its_calls_with_it() -> None:
    world = World()
    async with world.jobs.kept():
        running = asyncio.create_task(world.run(call(1)))
        await world.until(lambda: world.open > 0)
        running.cancel()
        await asyncio.wait({running})
        assert world.open == 0
        assert not world.jobs.any


async def test_S4_no_more_than_a_few_calls_are_jobs_at_once_and_the_others_are_waited_for() -> None:
    world = World()
    async with world.jobs.kept():
        running = asyncio.create_task(world.run(*(call(n) for n in range(MOST_OPEN + 2))))
        await world.until(lambda: len(world.jobs.without_result) == MOST_OPEN)
        await asyncio.sleep(0.05)
        assert not running.done()
        world.gate.set()
        outcomes = await running
    assert sum(outcome.job is not None for outcome in outcomes) == MOST_OPEN
    assert sum(outcome.rendered.body == "done" for outcome in outcomes) == 2


async def test_D2_a_job_keeps_its_place_among_the_calls_that_may_be_with_the_host() -> None:
    world = World()
    async with world.jobs.kept():
        await world.run(*(call(n) for n in range(MOST_OPEN)))
        running = asyncio.create_task(world.run(*(call(n) for n in range(10, 20))))
        await world.until(lambda: world.open == CALLS_PER_RUN)
        await asyncio.sleep(0.05)
        assert world.most == CALLS_PER_RUN
        world.gate.set()
        await running
    assert world.calls == MOST_OPEN + 10


@pytest.mark.parametrize("name", ["activate", "event_kick_member", "event_reply"])
async def test_J3_calls_that_may_not_meet_others_of_their_kind_never_become_jobs(name: str) -> None:
    world = World()
    async with world.jobs.kept():
        running = asyncio.create_task(world.run(call(1, name, '{"n": 1}'), call(2, name, '{"n": 2}')))
        await world.until(lambda: world.open > 0)
        await asyncio.sleep(0.05)
        assert not world.jobs.any
        world.gate.set()
        outcomes = await running
    assert world.most == 1
    assert [outcome.rendered.body for outcome in outcomes] == ["done", "done"]


async def test_S4_the_output_takes_no_slot_since_it_waits_for_those_that_do() -> None:
    world = World()
    world.executor = world.executor_with(slots=ToolSlots(1), run_slots=asyncio.Semaphore(1))
    async with world.jobs.kept():
        await world.run(call(1))
        (pending,) = await world.run(call(2, "job_output", '{"job": "job_1"}'))
        assert pending.rendered.pending
        world.gate.set()
        (outcome,) = await world.run(call(3, "job_output", '{"job": " job_1 "}'))
    assert outcome.rendered.body == "done"
    assert not outcome.ran


async def test_S4_a_job_that_the_host_broke_off_is_a_failure() -> None:
    world = World()

    async def broken_off(_name: str, _values: dict[str, Json]) -> object:
        await world.gate.wait()
        raise asyncio.CancelledError

    world.executor = world.executor_with(call_tool=broken_off)
    async with world.jobs.kept():
        await world.run(call(1))
        world.gate.set()
        (outcome,) = await world.run(call(2, "job_output", '{"job": "job_1"}'))
    assert outcome.rendered.error is ErrorCode.FAILED


async def test_D3_a_call_of_the_loop_itself_that_the_host_breaks_off_costs_nothing_else() -> None:
    world = World()

    async def broken_off(_name: str, _values: dict[str, Json]) -> object:
        raise asyncio.CancelledError

    entry = TOOLS.entries[0]
    assert await world.executor_with(call_tool=broken_off).aside(entry, {}, 5) is None
    assert await world.executor.aside(entry, {}, 0.01) is None
    asking = asyncio.create_task(world.executor.aside(entry, {}, 60))
    await world.until(lambda: world.open == 1)
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()


ROW = "   {n}: {ip}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 41 1"
HEAD = "  sl  local_address rem_address   st\n"


@given(st.lists(st.tuples(st.integers(1, 65_535), st.sampled_from(["0A", "01", "06"])), max_size=30))
def test_S4_the_ports_that_listen_are_read_from_the_kernels_table(rows: list[tuple[int, str]]) -> None:
    table = HEAD + "\n".join(
        ROW.format(n=n, ip="0" * (8 if n % 2 else 32), port=port, state=state) for n, (port, state) in enumerate(rows)
    )
    wanted = tuple(sorted({port for port, state in rows if state == "0A"})[:MOST_PORTS])
    assert listening_ports(table) == wanted


@given(st.text())
def test_S7_of_any_answer_only_numbers_are_taken(answer: str) -> None:
    assert listening_ports(answer) is None
    assert listening_ports("local_address" + answer) is not None
