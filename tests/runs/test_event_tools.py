"""J2, J3: tools of an agent that change or remove things, and its answer when sending fails on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.channel.answering import EVENT_REPLY
from tests.host import Fault, Model, Reply, ToolCall
from tests.host.host import TestHost as Host

from .agents import ANSWER, agent, called, check, in_pieces, streamed

# Tools of an agent that change or remove things (J3).


async def test_J3_a_friend_request_is_approved_once() -> None:
    approve = ToolCall("event_respond_friend_request", {"approve": True})
    host = agent(replies=[Reply(tool_calls=[approve]), "Approved."])
    run = await host.event("friend.request_received", {"request_id": "7", "message": "hi"}, conversation=None)
    check(run, host)
    assert host.world.platform.actions == [("event_respond_friend_request", {"approve": True})]


@pytest.mark.parametrize(
    "arguments",
    ['{"approve": "true"}', '{"approve": true', "{'approve': True}", '{"approve": true, "reason": "x"}', "{}", "true"],
)
async def test_J3_arguments_that_are_not_exact_never_reach_a_tool_that_changes_things(arguments: str) -> None:
    host = agent(replies=[Reply(tool_calls=[ToolCall("event_respond_friend_request", arguments)]), "Could not."])
    run = await host.event("friend.request_received", {"request_id": "7"}, conversation=None)
    check(run, host)
    assert host.world.platform.actions == []
    (ended,) = run.of("tool.call.completed")
    assert "invalid_arguments" in ended["error"]


async def test_J3_a_name_that_is_almost_right_never_reaches_a_tool_that_changes_things() -> None:
    host = agent(replies=[Reply(tool_calls=[ToolCall("event_respond_friend_requests", {"approve": True})]), "No."])
    run = await host.event("friend.request_received", {"request_id": "7"}, conversation=None)
    check(run, host)
    assert host.world.platform.actions == []


async def test_J3_tools_that_change_things_never_run_beside_each_other() -> None:
    calls = [
        ToolCall("event_mute_member", {"duration": 60}, id="a"),
        ToolCall("event_kick_member", {}, id="b"),
        ToolCall("platform_set_group_name", {"group_id": "9", "name": "Quiet"}, id="c"),
        ToolCall("event_get_group", {}, id="d"),
    ]
    host = agent(replies=[Reply(tool_calls=calls), "Done."], allowed_platform_tools=["platform_set_group_name"])
    open_calls: list[str] = []
    most = 0

    async def slowly(data: dict[str, Any]) -> dict[str, Any]:
        nonlocal most
        open_calls.append(data["tool_name"])
        most = max(most, len([name for name in open_calls if not name.startswith("event_get")]))
        await asyncio.sleep(0.05)
        open_calls.remove(data["tool_name"])
        return {"result": {"ok": True}}

    host.answer_with("call_tool", slowly)
    run = await host.event("group.member_joined", {}, sender="u7", conversation="group_9")
    check(run, host)
    assert run.calls.count("call_tool") == 4
    assert most == 1


async def test_J3_a_tool_that_changes_things_is_not_run_again_after_a_time_out() -> None:
    approve = ToolCall("event_respond_friend_request", {"approve": True}, id="same")
    host = agent(replies=[Reply(tool_calls=[approve]), "It may have worked."])
    host.fail("call_tool", Fault.timeout())
    run = await host.event("friend.request_received", {"request_id": "7"}, conversation=None)
    check(run, host)
    assert run.calls.count("call_tool") == 1


async def test_J3_two_equal_calls_in_one_reply_kick_once() -> None:
    kicks = [ToolCall("event_kick_member", {}, id="same"), ToolCall("event_kick_member", {}, id="other")]
    host = agent(replies=[Reply(tool_calls=kicks), "Removed."])
    run = await host.event("group.member_joined", {}, sender="u7", conversation="group_9")
    check(run, host)
    assert host.world.platform.actions == [("event_kick_member", {})]
    assert len(run.of("tool.call.completed")) == 2


KICK = ToolCall("event_kick_member", {})


async def kicked(host: Host) -> int:
    """How often the new member was kicked in a run that is sound otherwise."""
    run = await host.event("group.member_joined", {}, sender="u7", conversation="group_9")
    check(run, host)
    assert run.status == "completed"
    return len(host.world.platform.actions)


async def test_J3_past_the_last_allowed_round_nothing_is_changed_any_more() -> None:
    rounds = [Reply(tool_calls=[KICK])] * 3
    host = agent(config={"max-tool-iterations": 1}, replies=[*rounds, "Removed."])
    assert await kicked(host) == 1


async def test_J3_a_call_in_a_reply_that_was_cut_off_changes_nothing() -> None:
    host = agent(replies=[Reply("I remove", tool_calls=[KICK], finish_reason="length"), "Could not."])
    assert await kicked(host) == 0


async def test_J3_a_model_that_fails_behind_its_call_leaves_the_kick_to_the_next() -> None:
    broken = Model("m1", replies=[Reply(tool_calls=[KICK], error="connection failed", error_after=9)])
    host = agent(models=[broken, Model("m2", replies=[Reply(tool_calls=[KICK]), "Removed."])])
    assert await kicked(host) == 1


@pytest.mark.parametrize("mode", ["parallel", "serial"])
async def test_J3_each_round_may_change_something_once(mode: str) -> None:
    rounds = [Reply(tool_calls=[KICK, KICK]), Reply(tool_calls=[KICK])]
    assert await kicked(agent(config={"tool-execution-mode": mode}, replies=[*rounds, "Removed."])) == 2


# An agent's answer when sending it fails on the way (J2).

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
