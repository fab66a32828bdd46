"""What the person in the chat sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import RunRecord, TestHost

from .probes import Probe, completed, delta


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
