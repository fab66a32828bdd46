"""Small Runners that try one thing each."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIException
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

Step = Callable[[RunnerAPIProxy, RunnerContext], Awaitable[Any] | AsyncIterator[RunnerResult]]


class Probe(Runner):
    """Runs `step`, a coroutine function whose value is kept in `seen`, or an async generator of results."""

    def __init__(self, step: Step) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the SDK leaves it without types
        self._step = step
        self.seen: list[Any] = []
        self.contexts: list[RunnerContext] = []

    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        self.contexts.append(ctx)
        made = self._step(self.get_run_api(ctx), ctx)
        if isinstance(made, AsyncIterator):
            async for result in made:
                yield result
            return
        self.seen.append(await made)
        yield completed(ctx, "done")
        yield RunnerResult.run_completed(ctx.run_id)


def delta(ctx: RunnerContext, text: str, *, final: bool = False) -> RunnerResult:
    chunk = MessageChunk(role="assistant", content=text, all_content=text, is_final=final, msg_sequence=1)
    return RunnerResult.message_delta(ctx.run_id, chunk)


def completed(ctx: RunnerContext, text: str, **more: Any) -> RunnerResult:
    return RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=text), **more)


def user(text: str) -> Message:
    return Message(role="user", content=text)


async def error_of(call: Awaitable[Any]) -> Any:
    """The API error a call ends with; fails when it does not."""
    try:
        value = await call
    except AgentAPIException as raised:
        return raised.error
    raise AssertionError(f"no error, but {value!r}")
