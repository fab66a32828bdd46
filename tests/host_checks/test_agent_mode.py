"""Agent mode: the Host sends nothing by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import TestHost

from .probes import Probe, completed, error_of


async def test_messages_are_kept_but_not_sent() -> None:
    host = TestHost(mode="agent")
    run = await host.say("hi")
    assert run.ctx["delivery"]["automatic_reply"] is False
    assert (run.status, run.cards, run.final_text) == ("completed", [], "Echo: hi")
    assert [row.text for row in host.transcript()] == ["hi", "Echo: hi"]
    assert not host.steer("more")


async def test_an_event_grants_its_own_tools_and_allowed_platform_tools() -> None:
    host = TestHost(mode="agent", allowed_platform_tools=["platform_kick_member", "event_kick_member", "nonsense"])
    run = await host.event("friend.request_received", {"request_id": "7"}, conversation=None)
    names = [tool["tool_name"] for tool in run.ctx["resources"]["tools"] if tool["tool_type"] != "skill"]
    assert names == ["platform_kick_member", "event_reply", "event_get_actor", "event_respond_friend_request"]
    assert run.ctx["event"]["data"]["request_id"] == "7"
    assert run.ctx["input"]["text"] == "friend.request_received"
    assert run.ctx["context"]["available_apis"]["history_page"] is False


async def test_replies_go_out_by_tool_and_by_stream() -> None:
    async def reply(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        await api.call_tool("event_reply", {"text": "one"})
        async with api.reply_stream() as stream:
            first = await stream.update("t")
            await stream.update("two")
        return first, stream.result, await error_of(api.call_tool("event_reply", {"text": "x", "more": 1}))

    probe = Probe(reply)
    host = TestHost(probe, mode="agent")
    await host.say("hi")
    first, last, strict = probe.seen[0]
    assert host.world.platform.replies == ["one", "two"]
    assert (first["status"], first["delivery"]) == ("open", "streaming")
    assert (last["status"], last["text"]) == ("completed", "two")
    assert "Unexpected platform tool parameters" in strict.message


async def test_a_stream_that_is_given_up_sends_nothing_more() -> None:
    async def reply(api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        try:
            async with api.reply_stream() as stream:
                await stream.update("half")
                raise LookupError
        except LookupError:
            yield completed(ctx, "gave up")
        yield RunnerResult.run_completed(ctx.run_id)

    host = TestHost(Probe(reply), mode="agent")
    run = await host.say("hi")
    (result,) = run.reply_streams.results.values()
    assert (result["status"], host.world.platform.replies) == ("cancelled", [])


async def test_files_with_a_message_fail_the_run() -> None:
    async def send(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        yield completed(ctx, "Here", file_ids=["a"])

    run = await TestHost(Probe(send), mode="agent").say("hi")
    assert (run.status, run.error) == ("failed", "Agent files must be sent explicitly through the reply API")
