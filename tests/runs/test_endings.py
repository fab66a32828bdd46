"""I4: a run ends with its work, whatever the Host is still asked then and however that is answered.

The answer to a call in flight is held, and let go a number of turns of the loop after what ends the run. Which turn
hits depends on the code in between, so each is tried. The clock is steered: a look at the Host's flag, one a second,
costs nothing, and how many there were after the end is what is asserted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.faults.stages import SECONDS, STAGES, Stage
from tests.host import Fault, RunRecord
from tests.host.steered import run_steered

LATE, NOW = range(10), range(5)
"""Turns of the loop: behind a run's last question, and behind what breaks a run off."""

ANSWERS: dict[str, Fault | None] = {
    "success": None,
    "an error": Fault.error("database is locked"),
    "a time-out": Fault.timeout(),
}
"""What is left of the many ways to fail: each at the border itself is in `tests/unit/test_cancellation.py`."""

WHERE = {
    "get_prompt": "plain",
    "history_page": "plain",
    "count_tokens": "plain",
    "invoke_llm_stream": "plain",
    "run_events_page": "plain",
    "steering_pull": "plain",
    "call_tool": "tools",
    "retrieve_knowledge": "knowledge",
    "invoke_rerank": "knowledge",
    "get_box_status": "agent_with_files",
    "acquire_box": "sandbox",
    "bind_box": "sandbox",
    "import_attachments": "sandbox",
    "export_box_files": "sandbox",
    "state_get": "compaction",
    "state_set": "compaction",
    "invoke_llm": "not_streamed",
    "get_langbot_version": "not_streamed",
    "run_list": "lost_pull",
    "reply_stream": "event_agent",
    "reply_files": "agent_with_files",
}
"""A stage on which each call is made, by the name of the call."""

BY_ITSELF = ("plain", "tools", "slow_tools", "follow_ups", "sandbox", "compaction", "small_profile", "event_agent")
"""Stages whose runs end by themselves while the Host is asked for its flag."""


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def assert_over(run: RunRecord) -> None:
    """The run ends within a second: the time of one look at the Host's flag."""
    assert run.task is not None
    polls = run.calls.count("run_get")
    await asyncio.wait({run.task}, timeout=1.0)
    assert run.task.done(), "the run goes on"
    await assert_quiet(run)
    assert run.calls.count("run_get") <= polls + 1


async def assert_quiet(run: RunRecord) -> None:
    """After one more look at the flag the run asks for nothing any more, and waits for nothing."""
    await asyncio.sleep(1.5)
    made = len(run.calls)
    await asyncio.sleep(5.0)
    assert run.calls.names[made:] == []
    assert run.calls.still_open == []


Play = Callable[[Stage, int], Awaitable[None]]


async def each_turn(name: str, play: Play, turns: Sequence[int] = NOW) -> None:
    """Plays a stage once for each number of turns, all at the same time."""
    stages = [STAGES[name]() for _ in turns]
    try:
        await asyncio.gather(*map(play, stages, turns))
    finally:
        for stage in stages:
            await stage.host.aclose()
    # On 3.11 the SDK's own task may lose that its reader is gone, and wait for ever for that to take what it has.
    ours = [task for task in asyncio.all_tasks() if "Handler._handle_action" not in str(task)]
    assert ours == [asyncio.current_task()], "something lives on"


@pytest.mark.parametrize("answer", ["success", "an error"])
@pytest.mark.parametrize("action", [action for action in WHERE if not action.startswith("reply_")])
def test_I4_a_run_that_is_stopped_ends_although_a_call_is_answered_in_that_moment(action: str, answer: str) -> None:
    async def play(stage: Stage, turns: int) -> None:
        gate = asyncio.Event()
        stage.host.fail(action, Fault.held(gate, ANSWERS[answer]))
        run = stage.start()
        await held(run)
        polls = run.calls.count("run_get")
        stage.host.cancel(run)
        # The Host ends a run whose flag is set at its next result; else the run has to look.
        await until(run, lambda: run.calls.count("run_get") > polls or not run.active)
        await turns_of_the_loop(turns)
        gate.set()
        await assert_over(run)
        assert run.status == "cancelled"

    run_steered(each_turn(WHERE[action], play))


@pytest.mark.parametrize("answer", ["success", "an error"])
@pytest.mark.parametrize("action", WHERE)
def test_I4_a_run_whose_reader_is_gone_ends_although_a_call_is_answered_in_that_moment(
    action: str, answer: str
) -> None:
    async def play(stage: Stage, turns: int) -> None:
        gate = asyncio.Event()
        stage.host.fail(action, Fault.held(gate, ANSWERS[answer]))
        run = stage.start()
        await held(run)
        assert run.task is not None
        run.task.cancel()
        await turns_of_the_loop(turns)
        gate.set()
        # Where the SDK lost the news (3.11, a line of the log in that moment), the next look at the flag tells.
        await assert_quiet(run)

    run_steered(each_turn(WHERE[action], play))


@pytest.mark.parametrize("name", BY_ITSELF)
def test_I4_a_run_ends_right_after_its_answer_although_its_last_poll_is_answered_in_that_moment(name: str) -> None:
    clean = run_steered(undisturbed(name))
    polls, pulls = clean.calls.count("run_get"), clean.calls.count("steering_pull")

    def play_with(answer: Fault | None) -> Play:
        async def play(stage: Stage, turns: int) -> None:
            gate = asyncio.Event()
            stage.host.fail("run_get", Fault.held(gate, answer), nth=polls)
            run = stage.start()
            await until(run, lambda: run.calls.count("steering_pull") == pulls)
            assert {"run_get", "steering_pull"} <= {call.action for call in run.calls if call.open}
            await turns_of_the_loop(turns)
            gate.set()
            await assert_over(run)
            assert (run.status, run.final_text) == ("completed", clean.final_text)
            assert run.calls.count("run_get") == polls

        return play

    for answer in ANSWERS.values():
        run_steered(each_turn(name, play_with(answer), LATE))


async def undisturbed(name: str) -> RunRecord:
    """The run of a stage without a fault."""
    stage = STAGES[name]()
    run = await stage.start().wait()
    await stage.host.aclose()
    return run


async def until(run: RunRecord, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            run._news.clear()
            await run._news.wait()


async def held(run: RunRecord) -> None:
    """Wait until the run stands still at the call that is held."""
    await until(run, lambda: any(call.fault is not None and call.fault.kind == "held" for call in run.calls))
