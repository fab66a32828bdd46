"""I4: a run ends with its work, whatever the Host is still asked, and loses nothing at odd moments."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.run import interrupt
from tests.faults.matrix import SECONDS, STAGES, Stage
from tests.host import Fault, Model, ModelRequest, Reason, Reply, RunRecord, Tool, ToolCall
from tests.host.steered import run_steered

from .scenes import LOOKING, broken_rules, host_with, looks, lost_steering, rows

# I4: a run ends with its work, whatever the Host is still asked then and however that is answered.
#
# The answer to a call in flight is held, and let go a number of turns of the loop after what ends the run. Which turn
# hits depends on the code in between, so each is tried. The clock is steered: a look at the Host's flag, one a second,
# costs nothing, and how many there were after the end is what is asserted.

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


# Moments in which runs once went wrong: cancellations lost, follow-ups lost, names and halves of characters.

STOPPED = say(Notice.STOPPED_NOTE, Locale.EN_US)


async def settled() -> None:
    """Until the Host has done with the results so far: it looks at the flag after each, and closes the run there."""
    await asyncio.sleep(0.05)


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.005)
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: 0.0)


@pytest.mark.usefixtures("quick_polls")
async def test_Q4_the_end_of_a_run_is_never_lost_to_a_poll_that_is_answered_in_that_moment() -> None:
    stuck = 0
    for _ in range(150):
        host = host_with(models=[Model("m1", default=looks("m1"))], tools=[Tool("look", delay=0.003)])
        run = host.start("go")
        try:
            async with asyncio.timeout(3):
                await run.wait()
        except TimeoutError:
            stuck += 1
        await host.aclose()
        if stuck:
            break
    assert stuck == 0


@pytest.mark.usefixtures("quick_polls")
async def test_G2_what_a_stream_has_shown_is_the_completed_message_marked_as_stopped() -> None:
    host = host_with(replies=[Reply(chunks=["Once ", "upon ", "a time"], chunk_delay=60)])
    run = host.start("go")
    await run.until_result("message.delta")
    await settled()
    host.cancel(run)
    await run.wait()
    assert run.status == "cancelled"
    assert run.final_text == f"Once \n\n{STOPPED}"
    assert rows(host)[-1] == ("assistant", run.final_text)


@pytest.mark.usefixtures("quick_polls")
async def test_G2_what_was_said_before_a_waiting_tool_is_the_completed_message_marked_as_stopped() -> None:
    gate = asyncio.Event()
    host = host_with(replies=[LOOKING, "Hello."], tools=[Tool("look", fn=gate.wait)])
    run = host.start("go")
    await run.until_result("tool.call.started")
    await settled()
    host.cancel(run)
    await run.wait()
    gate.set()
    assert run.final_text == f"Looking.\n\n{STOPPED}"
    nxt = await host.say("again")
    assert nxt.requests[-1].roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("fault", [Fault.error(), Fault.timeout(), Fault.drop(), Fault.lost(), Fault.malformed()])
async def test_F2_counting_that_fails_in_a_later_turn_makes_the_next_model_answer(fault: Fault) -> None:
    models = [Model(name, default=looks(name, 1)) for name in ("m1", "m2")]
    host = host_with(models=models, tools=[Tool("look")])
    host.fail("count_tokens", fault, nth=2, times=2)
    run = await host.say("go")
    assert run.final_text == "m1 looks 1. \n\nNow m2 knows"
    assert run.finish_reason == "stop"


async def test_G1_a_last_pull_that_fails_once_loses_nothing() -> None:
    host = host_with()

    def first(_request: ModelRequest) -> Reply:
        assert host.steer("and now?")
        return Reply("First.")

    host.model.say(first, "Second.")
    host.fail("steering_pull", Fault.error())
    run = await host.say("go")
    assert lost_steering(run) == []
    assert run.final_text == "First.\n\nSecond."


async def test_G1_what_is_said_during_a_reply_that_breaks_off_is_answered() -> None:
    host = host_with()

    def first(_request: ModelRequest) -> Reply:
        assert host.steer("and now?")
        return Reply(chunks=["Well, ", "x"], error=Reason.CONNECTION, error_after=1)

    host.model.say(first, "Second.")
    run = await host.say("go")
    assert lost_steering(run) == []


@pytest.mark.parametrize("name", ["7zip", "-", "2_plus_2"])
async def test_D1_a_tool_name_that_begins_with_no_letter_has_an_alias(name: str) -> None:
    run = await host_with(tools=[Tool(name)]).say("go")
    assert broken_rules(run) == []


@pytest.mark.parametrize("name", ["bad name!", "", "天气", "x" * 80, "functions.look", "1st"])
async def test_D3_a_made_up_name_goes_into_the_history_as_one_that_providers_take(name: str) -> None:
    host = host_with(replies=[Reply(tool_calls=[ToolCall(name, {"a": 1}, id="c1")]), "Done."], tools=[Tool("look")])
    run = await host.say("go")
    assert run.final_text == "Done."
    assert broken_rules(run) == []


@pytest.mark.usefixtures("quick_polls")
async def test_G2_a_run_whose_session_is_gone_stops_by_itself() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    host.fail("run_get", Fault.error("Run session 1 not found or expired"), nth=3, times=None)
    run = host.start("go")
    try:
        async with asyncio.timeout(3):
            await run.wait()
    finally:
        await host.aclose()
    assert host.model.aborted == 1


async def test_C3_without_an_answer_about_the_hosts_version_the_level_is_left_out() -> None:
    host = host_with(
        models=[Model("m1", replies=["Here."])], config={"model": {"primary": "m1", "reasoning": {"m1": "high"}}}
    )
    host.fail("get_langbot_version", Fault.error(), times=None)
    run = await host.say("go")
    assert run.final_text == "Here."


async def test_C8_a_dropped_connection_is_a_network_failure_and_retryable() -> None:
    host = host_with(models=[Model("m1")])
    host.fail("invoke_llm_stream", Fault.drop(), times=None)
    run = await host.say("go")
    assert run.terminal["data"]["retryable"] is True


async def test_C1_white_space_of_an_empty_reply_is_no_part_of_the_next_models_answer() -> None:
    models = [Model("m1", default=Reply("  \n ")), Model("m2", default=Reply("Here."))]
    run = await host_with(models=models).say("go")
    assert run.final_text == "Here."
