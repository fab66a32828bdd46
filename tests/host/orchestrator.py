"""One run from the Host's side: langbot/pkg/agent/runner/orchestrator.py:run, invoker.py, result_normalizer.py,
run_journal.py."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pydantic
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.interaction import INTERACTION_REQUESTED_ACTION
from langbot_plugin.api.entities.builtin.runner.result import (
    ActionRequestedPayload,
    MessageCompletedPayload,
    MessageDeltaPayload,
    ProcessorLogPayload,
    RunCompletedPayload,
    RunFailedPayload,
    StateUpdatedPayload,
    ToolCallCompletedPayload,
    ToolCallStartedPayload,
)
from langbot_plugin.runtime.plugin.runner_service import RunnerRuntimeService

from .chat import Delivered, RunFailed
from .platform import CardRefused
from .plugin import AUTHOR, COMPONENT, NAME, RUNNER_ID
from .run_record import RunRecord
from .script import Json
from .transcript import SCOPES, StateRefused, hollow
from .world import World

_PAYLOADS: dict[str, type[pydantic.BaseModel]] = {
    "message.delta": MessageDeltaPayload,
    "message.completed": MessageCompletedPayload,
    "tool.call.started": ToolCallStartedPayload,
    "tool.call.completed": ToolCallCompletedPayload,
    "state.updated": StateUpdatedPayload,
    "action.requested": ActionRequestedPayload,
    "run.completed": RunCompletedPayload,
    "run.failed": RunFailedPayload,
    "processor.log": ProcessorLogPayload,
}


async def conduct(world: World, record: RunRecord, service: RunnerRuntimeService) -> None:
    """Runs `record` to its end and writes down how it ended. Never raises for what the Runner does."""
    journal = Journal(world, record)
    journal.open()
    try:
        async with aclosing(_messages(world, record, service, journal)) as messages:
            if world.mode == "pipeline":
                await record.chat.deliver(messages)
            else:
                async for _ in messages:
                    pass
        record.status = journal.status or "completed"
    except RunFailed as failure:
        expired = _expired(record)
        record.status = "timeout" if expired else "failed"
        record.error, record.code = str(failure), failure.code
        record.status_reason = f"Agent runner {RUNNER_ID} execution failed: {failure}"
    except asyncio.CancelledError:
        record.status, record.status_reason = "cancelled", "consumer_cancelled"
        raise
    finally:
        journal.close()


def _expired(record: RunRecord) -> bool:
    deadline = record.ctx["runtime"]["deadline_at"]
    return deadline is not None and time.time() >= deadline


async def _messages(
    world: World, record: RunRecord, service: RunnerRuntimeService, journal: Journal
) -> AsyncGenerator[Delivered, None]:
    """The messages of a run; raises `RunFailed` as soon as it has failed."""
    async with aclosing(_received(world, record, service)) as results:
        async for result in results:
            if not journal.accept(result):
                continue
            await asyncio.sleep(world.result_seconds)
            if result["type"] == "state.updated":
                continue
            if result["type"] == "action.requested" and _card(world, record, result["data"]):
                continue
            message = journal.normalise(result)
            if message is not None:
                yield message
            if record.cancel_requested_at is not None:
                journal.status = "cancelled"
                record.status_reason = record.status_reason or "cancel_requested"
                break


def _card(world: World, record: RunRecord, data: Json) -> bool:
    """Whether the action was a card, now in the chat. Raises RunFailed for a card that the Host or the platform
    refuses (interaction_manager.py:handle_result)."""
    if data.get("action") != INTERACTION_REQUESTED_ACTION:
        return False
    declared = world.manifest
    if not declared.capabilities.interactions or "request" not in declared.permissions.interactions:
        raise RunFailed("runner did not declare interaction capability and permission")
    incoming = record.incoming
    try:
        world.cards.request(data.get("payload"), record.run_id, incoming.conversation, incoming.sender)
    except CardRefused as refusal:
        raise RunFailed(str(refusal)) from refusal
    return True


async def _received(world: World, record: RunRecord, service: RunnerRuntimeService) -> AsyncGenerator[Json, None]:
    """Result dicts over the wire, under the Host's own deadline and idle rule (invoker.py:_next_with_deadline)."""
    forwarded = service.run_runner(AUTHOR, NAME, COMPONENT, record.ctx)
    deadline = record.ctx["runtime"]["deadline_at"]
    async with aclosing(forwarded):
        while True:
            limit = world.idle_limit if deadline is None else max(0.0, deadline - time.time())
            try:
                async with asyncio.timeout(limit):
                    result = await anext(forwarded)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise RunFailed("Runner timed out", code="runner.timeout", retryable=True) from None
            yield result


class Journal:
    """What the Host writes down of a run, and what it makes of each result."""

    def __init__(self, world: World, record: RunRecord) -> None:
        self.status: str | None = None
        self._world = world
        self._record = record
        self._seen: set[int] = set()
        self._answer_written = False

    def open(self) -> None:
        incoming = self._record.incoming
        self._world.events.append(incoming.event_row(len(self._world.events) + 1))
        if incoming.event_type == "message.received" and incoming.conversation:
            self._world.write_user_row(incoming)

    def close(self) -> None:
        """What steering is left unread is dropped: its sender gets no answer."""
        record = self._record
        for item in record.steering_queue:
            record.steering.append((item["event"]["event_id"], "dropped"))
        record.news()

    def accept(self, result: Json) -> bool:
        """False for a result the Host throws away: an invalid payload of a known type, a doubled number."""
        number = int(result.get("sequence") or 0)
        if number in self._seen:
            return self._drop(result, "duplicate sequence")
        self._seen.add(number)
        payload = _PAYLOADS.get(str(result.get("type")))
        if payload is not None:
            try:
                payload.model_validate(result.get("data", {}))
            except pydantic.ValidationError as error:
                return self._drop(result, str(error))
        self._record.results.append(result)
        self._record.news()
        if result["type"] == "state.updated":
            self._update_state(result["data"])
        return True

    def _drop(self, result: Json, reason: str) -> bool:
        self._record.dropped.append((result, reason))
        return False

    def _update_state(self, data: Json) -> None:
        """Failures are logged only (run_journal.py:handle_state_updated_event)."""
        owner = self._world.owners(self._record.incoming).get(data["scope"])
        try:
            if data["scope"] not in SCOPES or owner is None:
                raise StateRefused(f"Scope {data['scope']} is not available")
            self._world.state.set(data["scope"], owner, data["key"], data["value"])
        except StateRefused as refusal:
            self._record.state_errors.append(str(refusal))

    def normalise(self, result: Json) -> Delivered | None:
        """The message to deliver, if the result has one. Raises `RunFailed` for `run.failed` and protocol errors."""
        kind, data = result["type"], result["data"]
        if kind in ("run.completed", "run.failed"):
            self._terminal(kind, result)
        if data.get("message") and kind in ("message.completed", "run.completed"):
            self._write_answer(data["message"])
        if kind == "message.delta":
            return MessageChunk.model_validate(data["chunk"])
        if kind == "message.completed" or (kind == "run.completed" and "message" in data):
            return self._completed(kind, data)
        if kind == "run.failed":
            raise RunFailed(data["error"], code=data.get("code"), retryable=bool(data.get("retryable")))
        return None

    def _terminal(self, kind: str, result: Json) -> None:
        self.status = "completed" if kind == "run.completed" else "failed"
        if isinstance(result.get("usage"), dict):
            self._record.usage = result["usage"]
        reason = result["data"].get("finish_reason") or result["data"].get("error")
        self._record.status_reason = reason

    def _completed(self, kind: str, data: Json) -> Message:
        if not data.get("message"):
            raise RunFailed(f"{kind} missing message data")
        message = Message.model_validate(data["message"])
        if data.get("file_ids"):
            self._attach(data["file_ids"])
        return message

    def _attach(self, file_ids: list[str]) -> None:
        """Exported files go out with a completed message, in a pipeline only (orchestrator.py:run)."""
        if self._world.mode != "pipeline":
            raise RunFailed("Agent files must be sent explicitly through the reply API")
        try:
            self._record.files += self._world.box.take(self._record.run_id, file_ids)
        except Exception as error:  # whatever the Box refuses fails the run
            raise RunFailed(str(error)) from error

    def _write_answer(self, message: Json) -> None:
        """The first completed message of a run is the only one the transcript keeps (run_journal.py)."""
        conversation = self._record.incoming.conversation
        if self._answer_written or not conversation:
            return
        self._answer_written = True
        text, kept = answer_row(message)
        metadata = {"run_id": self._record.run_id, "runner_id": RUNNER_ID}
        self._world.transcript.add(conversation, "assistant", text, kept, metadata=metadata)


def answer_row(message: Json) -> tuple[str | None, Json | None]:
    """Text and `content_json` of an assistant row; both None for a message without content."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return content, message
    if not isinstance(content, list):
        return None, None
    texts = [str(part.get("text") or "") for part in content if part.get("type") == "text"]
    return " ".join(texts) or None, {**message, "content": [hollow(part) for part in content]}
