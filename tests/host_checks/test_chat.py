"""A whole run through the test host: what the person in the chat sees, in agent mode too, and the transcript."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import Attachment, Reply, RunRecord, TestHost, Tool, ToolCall

from .probes import Probe, completed, delta, error_of

# A whole run through the test host.


async def test_a_plain_message_is_answered_and_both_rows_are_kept() -> None:
    host = TestHost(replies=[Reply("Good morning", chunks=3)])
    run = await host.say("hello")
    assert (run.status, run.answer) == ("completed", "Good morning")
    assert [(row.role, row.text) for row in host.transcript()] == [("user", "hello"), ("assistant", "Good morning")]
    assert run.calls.names == ["get_prompt", "history_page", "invoke_llm_stream"]
    assert run.calls.depth == 2
    assert run.calls.before_first_model_call.depth == 1
    assert run.requests[0].roles == ["system", "user"]


async def test_a_tool_is_called_and_its_result_reaches_the_next_request() -> None:
    weather = Tool("weather", fn=lambda city: {"city": city, "sky": "clear"})
    host = TestHost(
        replies=[Reply("Let me see. ", tool_calls=[ToolCall("weather", {"city": "Oslo"})]), "Clear."], tools=[weather]
    )
    run = await host.say("weather in Oslo?")
    assert weather.calls == [{"city": "Oslo"}]
    assert run.requests[1].roles == ["system", "user", "assistant", "tool"]
    assert run.answer == "Let me see. Clear."


# What the person in the chat sees.


async def shown(*results: Any, **host: Any) -> RunRecord:
    """A run that yields what each function makes of its context."""

    async def say(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        for make in results:
            yield make(ctx)
        yield RunnerResult.run_completed(ctx.run_id)

    return await TestHost(Probe(say), **host).say("hi")


async def test_snapshots_and_the_message_behind_them_are_one_card() -> None:
    run = await shown(lambda c: delta(c, "He"), lambda c: delta(c, "Hello"), lambda c: completed(c, "Hello"))
    (card,) = run.cards
    assert (card.texts, card.final) == (["He", "Hello", "Hello"], True)


async def test_a_final_delta_and_a_message_that_is_its_end_are_merged() -> None:
    run = await shown(lambda c: delta(c, "Look.\nFound.", final=True), lambda c: completed(c, "Found."))
    (card,) = run.cards
    assert card.texts == ["Look.\nFound."]


async def test_a_message_that_differs_in_white_space_is_a_second_card() -> None:
    run = await shown(lambda c: delta(c, "Hello ", final=True), lambda c: completed(c, "Hello"))
    assert [card.text for card in run.cards] == ["Hello ", "Hello"]


async def test_an_adapter_without_streaming_gets_the_last_result_only() -> None:
    run = await shown(lambda c: completed(c, "Hello"), lambda c: delta(c, "late"), streaming_adapter=False)
    assert [card.text for card in run.cards] == ["late"]


async def test_an_empty_final_message_leaves_the_card_open() -> None:
    run = await shown(lambda c: delta(c, "Hel"), lambda c: completed(c, ""))
    (card,) = run.cards
    assert (card.text, card.final) == ("Hel", False)


async def test_a_failure_shows_a_hint_in_place_of_the_text_and_keeps_the_reason_back() -> None:
    run = await shown(lambda c: delta(c, "Hel"), lambda c: RunnerResult.run_failed(c.run_id, "secret", "x.y"))
    assert (run.status, run.error, run.code) == ("failed", "secret", "x.y")
    assert run.cards[-1].text == run.notice == "Agent runner execution failed."
    retry = await shown(lambda c: RunnerResult.run_failed(c.run_id, "later", "x.y", retryable=True))
    assert retry.answer == "Agent runner temporarily unavailable. Please try again."


async def test_an_invalid_payload_is_dropped_and_the_run_goes_on() -> None:
    bad: dict[str, Any] = {"tool_call_id": "a", "tool_name": "b", "result": [1]}
    run = await shown(
        lambda c: RunnerResult(run_id=c.run_id, type="tool.call.completed", data=bad), lambda c: completed(c, "ok")
    )
    assert [one["type"] for one, _ in run.dropped] == ["tool.call.completed"]
    assert run.answer == "ok"


async def test_a_delta_over_one_mebibyte_ends_the_run() -> None:
    run = await shown(lambda c: delta(c, "漢" * 90_000))
    assert run.status == "failed"
    assert "frame byte limit" in str(run.error)


async def test_an_exception_of_the_runner_is_a_failed_run() -> None:
    async def fail(_api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        raise LookupError("nothing there")

    run = await TestHost(Probe(fail)).say("hi")
    assert (run.status, run.code, run.error) == ("failed", "runner.exception", "Error running agent: nothing there")


async def test_state_updates_are_stored_and_their_failures_only_logged() -> None:
    host = TestHost(Probe(_update_state))
    run = await host.say("hi")
    assert host.state.get("conversation", "person_1", "k") == {"a": 1}
    assert run.status == "completed"
    assert len(run.state_errors) == 1


async def _update_state(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
    yield RunnerResult.state_updated(ctx.run_id, "k", {"a": 1}, "conversation")
    yield RunnerResult.state_updated(ctx.run_id, "big", "x" * 300_000, "conversation")
    yield RunnerResult.run_completed(ctx.run_id)


async def test_a_chunk_with_tool_calls_does_not_close_the_card() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    def with_call(ctx: RunnerContext) -> RunnerResult:
        chunk = MessageChunk.model_validate(
            {"role": "assistant", "content": "Look", "tool_calls": [call], "is_final": True}
        )
        return RunnerResult.message_delta(ctx.run_id, chunk)

    run = await shown(with_call, lambda c: completed(c, "Look. Done."))
    (card,) = run.cards
    assert (card.texts, card.final) == (["Look", "Look. Done."], True)


async def test_other_roles_than_the_assistant_are_not_shown() -> None:
    run = await shown(lambda c: RunnerResult.message_completed(c.run_id, Message(role="user", content="me")))
    assert [card.texts for card in run.cards] == [[]]


# Agent mode: the Host sends nothing by itself.


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


# The transcript as the plugin pages it.

PNG = "aVZCT1J3MEtHZ28="


async def pages(host: TestHost, *requests: dict[str, Any]) -> list[Any]:
    """One page for each request, read in one run."""

    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[Any]:
        return [await api.history_page(**request) for request in requests]

    probe = Probe(read)
    await host.use(probe)
    await host.say("now")
    return list(probe.seen[0])


def texts(page: Any) -> list[str]:
    return [item.content for item in page.items]


async def test_the_current_message_is_in_the_history_and_cursors_exclude_their_row() -> None:
    host = TestHost()
    host.remember(("user", "a"), ("assistant", "b"), ("user", "c"))
    newest, older, forward = await pages(
        host,
        {"limit": 2},
        {"before_cursor": "3"},
        {"after_cursor": "1", "direction": "forward", "limit": 2},
    )
    assert texts(newest) == ["now", "c"]
    assert (newest.next_cursor, newest.prev_cursor, newest.has_more) == ("3", "4", True)
    assert texts(older) == ["b", "a"]
    assert older.next_cursor is None
    assert texts(forward) == ["b", "c"]
    assert forward.next_cursor == "3"


async def test_forward_without_a_cursor_is_newest_first_and_a_page_has_at_most_100_rows() -> None:
    host = TestHost()
    host.remember(*[("user", str(index)) for index in range(120)])
    forward, big = await pages(host, {"direction": "forward", "limit": 2}, {"limit": 500})
    assert texts(forward) == ["now", "119"]
    assert len(big.items) == 100
    assert big.has_more


async def test_a_cursor_that_is_no_number_is_an_error() -> None:
    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.history_page(before_cursor="abc"))

    probe = Probe(read)
    await TestHost(probe).say("now")
    assert probe.seen[0].code == "host.action_error"
    assert probe.seen[0].message.startswith("ActionCallError: ValueError: invalid literal")


async def test_cursors_are_global_over_conversations() -> None:
    host = TestHost()
    host.remember(("user", "elsewhere"), conversation="person_2")
    await host.say("one")
    host.world.transcript.skip(10)
    await host.say("two")
    assert [row.seq for row in host.transcript()] == [2, 3, 14, 15]


async def test_content_is_cut_at_4000_characters_and_content_json_is_whole() -> None:
    host = TestHost()
    long = "x" * 5000
    host.remember(("user", long))
    (page,) = await pages(host, {})
    item = page.items[1]
    assert len(item.content) == 4000
    assert item.content.endswith("...")
    assert item.content_json["content"][0]["text"] == long


async def test_images_come_back_hollow() -> None:
    host = TestHost()
    await host.say("look", images=[PNG], attachments=[Attachment("a.pdf", "UERG")])
    (page,) = await pages(host, {"include_attachments": True})
    _, image, file = page.items[2].content_json["content"]
    assert (image["type"], image["image_base64"], image["content_redacted"]) == ("image_base64", None, True)
    assert (file["type"], file["file_base64"], file["file_name"]) == ("file_base64", None, "a.pdf")
    assert [one["type"] for one in page.items[2].attachment_refs] == ["image", "file"]


async def test_only_the_first_completed_message_of_a_run_is_kept() -> None:
    async def say_twice(_api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        yield completed(ctx, "first")
        yield completed(ctx, "second")
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="third"))

    host = TestHost(Probe(say_twice))
    run = await host.say("hi")
    assert [row.text for row in host.transcript()] == ["hi", "first"]
    assert [card.text for card in run.cards] == ["first", "second", "third"]


async def test_a_reset_hides_rows_and_deletes_conversation_state_only() -> None:
    host = TestHost()
    await host.say("old")
    host.state.set("conversation", "person_1", "k", 1)
    host.state.set("actor", "u1", "k", 2)
    host.reset()
    run = await host.say("new")
    assert [row.text for row in host.transcript()] == ["new", "Echo: new"]
    assert (run.ctx["state"]["conversation"].get("k"), run.ctx["state"]["actor"]) == (None, {"k": 2})
    assert run.ctx["context"]["latest_cursor"] == "2"


async def test_assistant_rows_keep_the_whole_message_with_private_fields() -> None:
    async def say(_api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        message = Message(role="assistant", content="hi", provider_specific_fields={"_localagent": {"a": 1}})
        yield RunnerResult.message_completed(ctx.run_id, message)
        yield RunnerResult.run_completed(ctx.run_id)

    host = TestHost(Probe(say))
    await host.say("hi")
    (page,) = await pages(host, {})
    assert page.items[1].content_json["provider_specific_fields"] == {"_localagent": {"a": 1}}
