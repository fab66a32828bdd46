"""One model of the Host as a provider: it counts and it generates; it decides nothing (C2–C4, F2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from langbot_plugin.api.entities.builtin.provider.message import LLMStreamEvent, Message, MessageChunk
from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel

from runner.conversation.request import Request
from runner.conversation.wire import Wire
from runner.errors import HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from runner.host import Host, ModelCall
from runner.models.lineup import ModelRef
from runner.models.reply import ReplyReader
from runner.models.trouble import trouble_of

_REFUSES_LEVEL = frozenset({ModelTrouble.REASONING_REFUSED, ModelTrouble.BAD_REQUEST})
"""A level that a provider refuses is seldom named in the error."""

_MAY_MEAN_LEVEL = _REFUSES_LEVEL | {ModelTrouble.OTHER}
"""Counting comes first, and asks nothing of a provider: there an unnamed error may be a Host that knows no levels."""


class HostModel:
    """Asks one model through the Host; raises ModelFailed. A refused reasoning level is left out, once (C3)."""

    def __init__(self, host: Host, ref: ModelRef, wire: Wire, *, remove_think: bool) -> None:
        self._host = host
        self._ref = ref
        self._wire = wire
        self._level: ReasoningLevel | None = ref.level
        # False would override the pipeline's own setting, so it is never sent (C4).
        self._remove_think = True if remove_think else None

    @property
    def id(self) -> str:
        return self._ref.id

    async def count(self, request: Request) -> int:
        """Input tokens of a request, tool schemas included (F2). Raises HostCallFailed."""
        call = self._call(request)
        try:
            return await self._host.count_tokens(call)
        except HostCallFailed as failure:
            if not self._drops_level(failure, _MAY_MEAN_LEVEL):
                raise
        return await self._host.count_tokens(replace(call, level=None))

    async def answer(self, request: Request, reader: ReplyReader) -> AsyncGenerator[str, None]:
        """Yield the visible fragments of a reply; the reader holds all of it afterwards.

        Close the generator to stop the provider.
        """
        seen = False
        try:
            async with aclosing(self._events(self._call(request))) as events:
                async for event in events:
                    seen = True
                    if event.usage is not None:
                        reader.take_usage(event.usage)
                    if event.chunk is not None and (text := reader.feed(event.chunk)):
                        yield text
        except HostCallFailed as failure:
            if seen or not self._drops_level(failure, _REFUSES_LEVEL):
                raise self._failed(failure) from failure
        else:
            return
        async with aclosing(self.answer(request, reader)) as again:
            async for text in again:
                yield text

    async def _events(self, call: ModelCall) -> AsyncGenerator[LLMStreamEvent, None]:
        """A reply that is not streamed is a stream of one chunk."""
        if self._ref.streams:
            async with aclosing(self._host.stream(call)) as stream:
                async for event in stream:
                    yield event
            return
        result = await self._host.invoke(call)
        yield LLMStreamEvent(chunk=_as_chunk(result.message), usage=result.usage)

    def _call(self, request: Request) -> ModelCall:
        return ModelCall(
            self.id,
            self._wire.messages(request, self.id),
            self._wire.tools(request.tools),
            request.extra,
            self._level,
            self._remove_think,
        )

    def _drops_level(self, failure: HostCallFailed, causes: frozenset[ModelTrouble]) -> bool:
        """Whether the failure may be about the reasoning level; if so it is not sent again in this run."""
        if self._level is None or trouble_of(failure) not in causes:
            return False
        self._level = None
        return True

    def _failed(self, failure: HostCallFailed) -> ModelFailed:
        cause = ModelTrouble.DENIED if failure.kind is HostFailure.DENIED else trouble_of(failure)
        return ModelFailed(self.id, cause, str(failure))


def _as_chunk(message: Message) -> MessageChunk:
    return MessageChunk.model_validate({**message.model_dump(), "is_final": True})
