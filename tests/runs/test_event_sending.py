"""An agent's answer when sending it fails on the way (J2)."""

from __future__ import annotations

import pytest

from runner.channel.answering import EVENT_REPLY
from tests.host import Fault

from .agents import ANSWER, agent, called, check, in_pieces, streamed

WAYS = [Fault.error(), Fault.timeout(), Fault.drop(), Fault.lost(), Fault.malformed(), Fault.hang(0.2)]


def kind(fault: Fault) -> str:
    return fault.kind


@pytest.mark.parametrize("fault", WAYS, ids=kind)
@pytest.mark.parametrize("native", [True, False])
async def test_J2_a_stream_that_fails_while_the_model_speaks_is_replaced_by_one_tool_call(
    fault: Fault, native: bool
) -> None:
    host = agent(replies=[in_pieces(ANSWER, 6, 0.15)], streaming_adapter=native)
    host.fail("reply_stream", fault, nth=1)
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert host.world.platform.replies == [ANSWER]
    assert called(run) == [{"text": ANSWER}]
    assert (run.status, run.final_text) == ("completed", ANSWER)
    assert any("streamed reply failed" in line for line in run.logs)


@pytest.mark.parametrize("fault", WAYS, ids=kind)
async def test_J2_a_later_update_that_fails_leads_to_one_tool_call_too(fault: Fault) -> None:
    host = agent(replies=[in_pieces(ANSWER, 8, 0.15)])
    host.fail("reply_stream", fault, nth=2)
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert (called(run), host.world.platform.replies) == ([{"text": ANSWER}], [ANSWER])
    assert run.status == "completed"


@pytest.mark.parametrize("fault", WAYS, ids=kind)
async def test_J2_a_visible_reply_whose_end_is_not_confirmed_is_not_sent_again(fault: Fault) -> None:
    host = agent(replies=[ANSWER])
    host.fail("reply_stream", fault, nth=2)  # one update with everything, then the end
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert [operation for operation, _ in streamed(run)][:2] == ["update", "finish"]
    assert (called(run), run.status, run.final_text) == ([], "completed", ANSWER)
    assert run.reply_streams.texts.popitem()[1][-1] == ANSWER


async def test_J2_a_buffered_reply_that_the_host_refuses_to_send_is_sent_by_one_tool_call() -> None:
    host = agent(replies=[ANSWER], streaming_adapter=False)
    host.fail("reply_stream", Fault.error(), nth=2)
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert (called(run), host.world.platform.replies) == ([{"text": ANSWER}], [ANSWER])


@pytest.mark.parametrize("fault", [Fault.timeout(), Fault.malformed(), Fault.hang(0.2)], ids=kind)
async def test_J2_a_buffered_reply_that_may_have_been_sent_is_not_sent_twice(fault: Fault) -> None:
    host = agent(replies=[ANSWER], streaming_adapter=False)
    host.fail("reply_stream", fault, nth=2)
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert (called(run), run.status, run.final_text) == ([], "completed", ANSWER)
    assert any("may not have arrived" in line for line in run.logs)


@pytest.mark.parametrize("fault", WAYS, ids=kind)
async def test_J2_when_the_reply_tool_fails_too_the_run_still_completes(fault: Fault) -> None:
    host = agent(replies=[ANSWER])
    host.fail("reply_stream", Fault.error(), times=None)
    host.fail("call_tool", fault)
    run = await host.say("Where is the kettle?")
    check(run, host)
    assert len(called(run)) == 1
    assert (run.status, run.final_text) == ("completed", ANSWER)
    assert any("could not be sent" in line for line in run.logs)


async def test_J2_a_reply_sent_by_tool_stands_in_the_run_log_as_a_call() -> None:
    host = agent(replies=[ANSWER], withheld_apis=["reply_stream"])
    run = await host.say("Where is the kettle?")
    (started,), (ended,) = run.of("tool.call.started"), run.of("tool.call.completed")
    assert (started["tool_name"], started["parameters"]) == (EVENT_REPLY, {"text": ANSWER})
    assert (ended["tool_call_id"], ended["error"]) == (started["tool_call_id"], None)
