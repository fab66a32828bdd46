"""Moments in which runs once went wrong: cancellations lost, follow-ups lost, names and halves of characters."""

from __future__ import annotations

import asyncio

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.run import interrupt
from tests.host import Fault, Model, ModelRequest, Reason, Reply, Tool, ToolCall

from .scenes import LOOKING, broken_rules, host_with, looks, lost_steering, rows

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
