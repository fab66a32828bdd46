"""One model of the Host as a provider: it counts and it generates; it decides nothing (C2–C4, F2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from langbot_plugin.api.entities.builtin.provider.message import LLMStreamEvent, Message, MessageChunk
from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel

from runner.conversation.request import Request
from runner.conversation.wire import Wire
from runner.host.errors import HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from runner.host.port import Host, ModelCall
from runner.models.fallback_order import ModelRef
from runner.models.refusals import Refusals, Step
from runner.models.reply import ReplyReader
from runner.models.trouble import trouble_of

_NO_REFUSAL = {HostFailure.DENIED: ModelTrouble.DENIED, HostFailure.MALFORMED: ModelTrouble.UNREADABLE}
"""What failed on the way, whatever the words: the model has refused nothing (K7)."""


class HostModel:
    """Asks one model through the Host; raises ModelFailed. `refusals` say whether its reasoning level goes along;
    `saw_thoughts` is told when a reply brings thoughts."""

    def __init__(
        self,
        host: Host,
        ref: ModelRef,
        wire: Wire,
        refusals: Refusals,
        *,
        remove_think: bool,
        saw_thoughts: Callable[[str], None] = lambda _model_id: None,
    ) -> None:
        self._host = host
        self._ref = ref
        self._wire = wire
        self._refusals = refusals
        # False would override the pipeline's own setting, so it is never sent (C4).
        self._remove_think = True if remove_think else None
        self._saw_thoughts = saw_thoughts

    @property
    def id(self) -> str:
        return self._ref.id

    @property
    def has_level(self) -> bool:
        return self._level is not None

    @property
    def _level(self) -> ReasoningLevel | None:
        return None if Step.LEVEL in self._refusals.without(self.id) else self._ref.level

    async def count(self, request: Request) -> int:
        """Input tokens of a request, tool schemas included (F2). Raises HostCallFailed."""
        return await self._host.count_tokens(self._call(request))

    async def answer(self, request: Request, reader: ReplyReader) -> AsyncGenerator[str, None]:
        """Yield the visible fragments of a reply; the reader holds all of it afterwards.

        Close the generator to stop the provider.
        """
        try:
            async with aclosing(self._events(self._call(request))) as events:
                async for event in events:
                    if event.usage is not None:
                        reader.take_usage(event.usage)
                    if event.chunk is not None and (text := reader.feed(event.chunk)):
                        yield text
            if reader.thought:
                self._saw_thoughts(self.id)
        except HostCallFailed as failure:
            raise self._failed(failure) from failure

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

    def _failed(self, failure: HostCallFailed) -> ModelFailed:
        return ModelFailed(self.id, _NO_REFUSAL.get(failure.kind) or trouble_of(failure), str(failure))


def _as_chunk(message: Message) -> MessageChunk:
    return MessageChunk.model_validate({**message.model_dump(), "is_final": True})
