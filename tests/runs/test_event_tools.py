"""Tools of an agent that change or remove things (J3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.host import Fault, Model, Reply, ToolCall
from tests.host.host import TestHost as Host

from .agents import agent, check


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
