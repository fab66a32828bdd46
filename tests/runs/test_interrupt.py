"""The Host's stop flag reaches whatever a run waits for (G2). Times are counted in polls, one a second in use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runner.host.port import Host
from runner.run import interrupt
from tests.host import Fault, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import LOOKING, assert_sound, host_with, orphans, rows

Wait = Callable[[RunRecord], Awaitable[object]]


class Polls:
    """How many polls may still go out: few, so that none is under way when a run ends by itself."""

    left = 6

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.fixture(autouse=True)
def polls(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Polls()
    ask, poll = RunRecord.request_cancel, interrupt._asked_to_stop

    def request_cancel(run: RunRecord, reason: str | None = None) -> None:
        made.left = 1_000
        ask(run, reason)

    async def asked_to_stop(host: Host) -> bool:
        return made.take() and await poll(host)

    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: 0.0)
    monkeypatch.setattr(interrupt, "_asked_to_stop", asked_to_stop)
    monkeypatch.setattr(RunRecord, "request_cancel", request_cancel)


async def stopped(host: TestHost, waits: Wait, text: str = "go") -> tuple[RunRecord, int]:
    """Starts a run, sets its flag once `waits` holds; the run, and how many polls it took to stop from then on."""
    run = host.start(text)
    await waits(run)
    before = run.calls.count("run_get")
    host.cancel(run)
    async with asyncio.timeout(10):
        await run.wait()
    return run, run.calls.count("run_get") - before


def forever(started: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def never() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    return never


async def assert_stopped(host: TestHost, run: RunRecord, polls: int) -> None:
    assert run.status == "cancelled"
    assert polls <= 2
    assert run.notice is None
    assert await orphans(host) == []
    assert run.calls.still_open == []


async def test_G2_a_model_that_says_nothing_is_left_and_its_stream_closed() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    run, polls = await stopped(host, lambda run: run.until("invoke_llm_stream"))
    await assert_stopped(host, run, polls)
    assert host.model.aborted == 1
    assert run.completed == []
    assert run.cards == []
    assert rows(host) == [("user", "go")]


async def test_G2_what_a_stream_has_shown_stays_on_the_card() -> None:
    host = host_with(replies=[Reply(chunks=["Once ", "upon ", "a time"], chunk_delay=60)])
    run, polls = await stopped(host, lambda run: run.until_result("message.delta"))
    await assert_stopped(host, run, polls)
    assert run.answer is not None
    assert run.answer.startswith("Once ")


@pytest.mark.parametrize("count", [1, 8])
async def test_G2_waiting_tools_are_left_and_what_was_said_before_them_stays(count: int) -> None:
    calls = [ToolCall("look", id=f"c{n}") for n in range(count)]
    host = host_with(replies=[Reply("Looking.", tool_calls=calls)], tools=[Tool("look", fn=forever(asyncio.Event()))])
    run, polls = await stopped(host, lambda run: run.until_result("tool.call.started", count))
    await assert_stopped(host, run, polls)
    assert run.answer is not None
    assert run.answer.startswith("Looking.")


@pytest.mark.parametrize("action", ["count_tokens", "history_page", "get_prompt", "steering_pull"])
async def test_G2_a_run_that_waits_for_any_answer_of_the_host_is_stopped(action: str) -> None:
    host = host_with(replies=["Hello."])
    host.fail(action, Fault.hang())
    run, polls = await stopped(host, lambda run: run.until(action))
    await assert_stopped(host, run, polls)


async def test_G2_a_run_that_does_not_stream_is_stopped_too() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    host.model.operations = frozenset({"invoke", "count_tokens"})
    run, polls = await stopped(host, lambda run: run.until("invoke_llm"))
    await assert_stopped(host, run, polls)
    assert run.completed == []


async def test_G2_the_host_hears_a_harmless_word_first_and_marks_the_run_itself() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    run, _ = await stopped(host, lambda run: run.until("invoke_llm_stream"))
    assert run.types == ["processor.log"]
    assert (run.code, run.error) == (None, None)


async def test_G2_an_unset_flag_stops_nothing() -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.5)])
    run = await host.say("go")
    assert run.calls.count("run_get") > 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


@pytest.mark.parametrize("fault", [Fault.error(), Fault.timeout(), Fault.malformed(), Fault.lost(), Fault.drop()])
async def test_G2_polls_that_fail_never_end_a_run(fault: Fault) -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.5)])
    host.fail("run_get", fault, times=None)
    run = await host.say("go")
    assert run.calls.count("run_get") > 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


async def test_G2_a_poll_that_hangs_delays_nothing() -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.3)])
    host.fail("run_get", Fault.hang(), times=None)
    run = await host.say("go")
    assert run.calls.count("run_get") == 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


async def test_G2_a_follow_up_that_was_never_read_when_the_run_stopped_is_not_answered_as_one_of_it() -> None:
    host = host_with(replies=[Reply("late", delay=60), "Next."])
    run = host.start("go")
    await run.until("invoke_llm_stream")
    assert host.steer("and more")
    host.cancel(run)
    await run.wait()
    nxt = await host.say("again")
    assert nxt.final_text == "Next."
    assert nxt.requests[-1].text.count("and more") == 1
    await assert_sound(host, nxt)


async def test_G2_one_run_of_two_is_stopped_and_the_other_goes_on() -> None:
    host = host_with(replies=[Reply("late", delay=60), Reply("Hello.", delay=0.3)])
    first = host.start("a", conversation="person_1")
    await first.until("invoke_llm_stream")
    second = host.start("b", conversation="person_2")
    await second.until("invoke_llm_stream")
    host.cancel(first)
    await first.wait()
    await second.wait()
    assert (first.status, second.final_text) == ("cancelled", "Hello.")


async def test_G2_after_a_stop_the_next_run_of_the_chat_is_as_any_other() -> None:
    gate = asyncio.Event()
    host = host_with(replies=[LOOKING, "Hello."], tools=[Tool("look", fn=gate.wait)])
    await stopped(host, lambda run: run.until_result("tool.call.started"))
    gate.set()
    run = await host.say("again")
    assert run.final_text == "Hello."
    await assert_sound(host, run)


async def test_G2_over_all_runs_ten_polls_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    host = host_with()
    host.model.default = Reply("Hello.", delay=0.4)
    runs = [host.start("go", conversation=f"person_{n}") for n in range(6)]
    for run in runs:
        await run.wait()
    # Twenty polls were due in each of the six runs; the runs last less than two seconds together.
    assert 1 <= sum(run.calls.count("run_get") for run in runs) <= 30
    assert [run.final_text for run in runs] == ["Hello."] * 6
