"""The door to LangBot: a context comes in, results go out. Translates, decides nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import LLMTokenUsage, Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.interaction import INTERACTION_REQUESTED_ACTION
from langbot_plugin.api.entities.builtin.runner.result import ProcessorLogPayload, RunnerResult, RunnerResultType

from config.settings import Settings
from runner.conversation.record import KEY
from runner.guards import loggable
from runner.host.events import (
    Answer,
    CardRequested,
    Completed,
    Event,
    Failed,
    Log,
    Snapshot,
    StateUpdated,
    ToolFinished,
    ToolStarted,
    Usage,
)
from runner.host.port import ProxyHost
from runner.run.run import Worker, run
from runner.small.part import EVERY_PART, Parts

_LOG_LIMIT = 65_536
"""Characters the Host takes in one log line."""

_MORE = 1_000
"""Characters read beyond it, so that a key at the end is seen whole and hidden."""


class DefaultRunner(Runner):
    """Serves every concurrent run of this worker; keeps nothing of any (G4).

    `parts`: what of the small profile is on; all of it wherever the Host makes the runner.
    """

    def __init__(self, *, parts: Parts = EVERY_PART) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the SDK leaves it without annotations
        self._worker = Worker(parts)

    # The SDK declares a coroutine and takes a generator as well (its `invoke` looks which one it got).
    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        """One run. Yields results up to the terminal one."""
        settings, notes = Settings.read(ctx.config)
        host = ProxyHost(self.get_run_api(ctx), ctx)
        async with aclosing(run(ctx, host, settings, notes, self._worker)) as events:
            async for event in events:
                yield result_of(ctx.run_id, event)


def result_of(run_id: str, event: Event) -> RunnerResult:
    """One event as the Host's result. Raises pydantic's ValidationError for what the protocol cannot carry."""
    match event:
        case Snapshot(text, sequence):
            chunk = MessageChunk(role="assistant", content=text, all_content=text, msg_sequence=sequence)
            return RunnerResult.message_delta(run_id, chunk)
        case Answer(text, record, file_ids):
            fields = {KEY: dict(record)} if record else None
            message = Message(role="assistant", content=text, provider_specific_fields=fields)
            return RunnerResult.message_completed(run_id, message, file_ids=list(file_ids))
        case ToolStarted(call_id, name, arguments):
            return RunnerResult.tool_call_started(run_id, call_id, name, dict(arguments))
        case ToolFinished(call_id, name, result, error):
            payload = dict(result) if result is not None else None
            return RunnerResult.tool_call_completed(run_id, call_id, name, payload, error)
        case Log(text, level):
            log = ProcessorLogPayload(text=loggable(text[: _LOG_LIMIT + _MORE])[:_LOG_LIMIT], level=level)
            return RunnerResult(run_id=run_id, type=RunnerResultType.PROCESSOR_LOG, data=log.model_dump())
        case StateUpdated(key, value):
            return RunnerResult.state_updated(run_id, key, value, "conversation")
        case CardRequested(request):
            return RunnerResult.action_requested(run_id, INTERACTION_REQUESTED_ACTION, payload=dict(request))
        case Completed(finish_reason, usage):
            return RunnerResult.run_completed(run_id, finish_reason=finish_reason, usage=_usage(usage))
        case Failed(message_text, code, retryable, usage):
            return RunnerResult.run_failed(run_id, loggable(message_text), code, retryable, usage=_usage(usage))


def _usage(usage: Usage | None) -> LLMTokenUsage | None:
    if usage is None:
        return None
    counters: dict[str, Any] = {
        **usage.extras,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
    }
    return LLMTokenUsage.model_validate(counters)
