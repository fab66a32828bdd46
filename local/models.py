"""Providers as the models of one run: who answers, who comes next, and one generation as a stream (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from langbot_plugin.api.entities.builtin.provider.message import MessageChunk

from callformats import format_named, render
from config.choices import CallFormat
from local.provider import Available, Completed, GenerateRequest, GenerateResult, NeedsDownload, Unavailable
from local.turns import chat_turns, compact_tools, schema_of, system_text, temperature_of
from runner.conversation.request import Request
from runner.host.errors import AllModelsFailed, ModelFailed, ModelTrouble
from runner.host.events import Usage
from runner.models.reply import ReplyReader
from runner.small.forms import WrittenCall
from runner.small.modes import Own

GRACE: Final = 0.5
"""Seconds a generation gets to end once nobody wants it; then it is left to itself."""

_LFM2: Final = "lfm2-pythonic"


def own_manner(provider: Completed, *, inline: bool) -> Own:
    """How a provider is asked for calls: by its chat template, or in the prompt's words with a JSON reply.

    `inline`: the second, whatever the provider says. Raises ValueError for a call format that nobody can write.
    """
    if provider.call_format == "guided":
        return Own(CallFormat.GUIDED, "json")
    if inline or provider.tools_inline:
        return Own(CallFormat.JSON, "json")
    known = format_named(_LFM2 if provider.call_format == "pythonic" else provider.call_format)
    render(WrittenCall("tool_name", {}), known.id)
    return Own(CallFormat.NATIVE, known.id)


class ProviderModel:
    """One provider as a model of the loop."""

    def __init__(self, provider: Completed) -> None:
        self.provider = provider
        self._ready = False

    @property
    def id(self) -> str:
        return self.provider.id

    @property
    def has_level(self) -> bool:
        """Never: an engine knows no levels."""
        return False

    async def make_ready(self) -> None:
        """Load it where that costs no download. Raises ModelFailed where it cannot run."""
        if self._ready:
            return
        try:
            state = await self.provider.availability()
            if isinstance(state, NeedsDownload) and state.cached:
                await self.provider.prepare(lambda _: None)
                state = await self.provider.availability()
        except Exception as error:  # whatever an engine raises, the next one may answer (S0)
            raise self._failed(error) from error
        if not isinstance(state, Available):
            why = state.reason if isinstance(state, Unavailable) else state.state
            raise ModelFailed(self.id, ModelTrouble.BROKEN, f"{self.provider.label} is not ready ({why})")
        self._ready = True

    async def fits(self, request: Request) -> bool:
        """Whether a request fits its window. Raises ModelFailed."""
        try:
            return await self.provider.fits(
                system_text(request.system), chat_turns(request.units), compact_tools(request)
            )
        except Exception as error:  # as above
            raise self._failed(error) from error

    async def answer(self, request: Request, reader: ReplyReader) -> AsyncGenerator[str, None]:
        """Yields the fragments of one generation. A provider that does not mind being stopped is left behind."""
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def on_token(piece: str) -> None:
            # Nothing but text is a piece of the reply, and nothing else may look like its end.
            if isinstance(piece, str) and not loop.is_closed():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        work = asyncio.create_task(self._generate(request, stop, on_token))
        work.add_done_callback(lambda _: loop.call_soon(pieces.put_nowait, None))
        try:
            streamed: list[str] = []
            while (piece := await pieces.get()) is not None:
                streamed.append(piece)
                yield _fed(reader, piece)
            result = work.result()
            rest = self._rest("".join(streamed), result.text)
            yield _fed(reader, rest, cut=result.cut)
        finally:
            stop.set()
            await _left(work)

    async def _generate(self, request: Request, stop: asyncio.Event, on_token: Callable[[str], None]) -> GenerateResult:
        asked = GenerateRequest(
            system=system_text(request.system),
            messages=chat_turns(request.units),
            tools=compact_tools(request),
            stop=stop,
            on_token=on_token,
            schema=schema_of(request.extra),
            temperature=temperature_of(request.extra),
        )
        try:
            return await self.provider.generate(asked)
        except asyncio.CancelledError:
            if stop.is_set():
                raise
            raise ModelFailed(self.id, ModelTrouble.OTHER, "the engine gave up its own generation") from None
        except Exception as error:  # whatever an engine raises, it is a model that failed
            raise self._failed(error) from error

    def _rest(self, streamed: str, text: str) -> str:
        """What was returned beyond what was streamed; a stop string at the end of the stream alone is no fault."""
        if streamed.startswith(text):
            return ""
        if text.startswith(streamed):
            return text[len(streamed) :]
        # White space around it makes no other text: many engines trim what they return.
        if streamed.strip().startswith(text.strip()):
            return ""
        raise ModelFailed(self.id, ModelTrouble.OTHER, "the engine streamed another text than it returned")

    def _failed(self, error: Exception) -> ModelFailed:
        broken = self.provider.broken
        if broken is not None:
            return ModelFailed(self.id, ModelTrouble.BROKEN, broken)
        return ModelFailed(self.id, ModelTrouble.OTHER, str(error) or type(error).__name__)


class Line:
    """The providers of one run in their order; both `Models` and `Order` of the loop."""

    def __init__(self, providers: Sequence[Completed]) -> None:
        self._models = [ProviderModel(provider) for provider in providers]
        self._place = 0
        self._failures: list[ModelFailed] = []

    @property
    def current(self) -> ProviderModel:
        return self._models[self._place]

    @property
    def lineup(self) -> Line:
        return self

    @property
    def is_last(self) -> bool:
        """Always: an empty reply is no reason to load another model; only a broken one is."""
        return True

    def advance(self, failure: ModelFailed) -> None:
        """The next provider after a broken one. Raises AllModelsFailed after any other failure, or at the end."""
        self._failures.append(failure)
        if failure.cause is not ModelTrouble.BROKEN or self._place + 1 == len(self._models):
            raise AllModelsFailed(tuple(self._failures)) from failure
        self._place += 1

    def add_usage(self, usage: Usage | None) -> None:
        """Engines of this door count nothing."""


def _fed(reader: ReplyReader, text: str, *, cut: bool = False) -> str:
    fields = {"finish_reason": "length"} if cut else None
    return reader.feed(MessageChunk(role="assistant", content=text, provider_specific_fields=fields))


async def _left(work: asyncio.Task[GenerateResult]) -> None:
    """Wait a moment for a generation that nobody wants any more; what does not end is left to itself."""
    work.cancel()
    await asyncio.wait({work}, timeout=GRACE)
    work.add_done_callback(_looked_at)


def _looked_at(work: asyncio.Task[GenerateResult]) -> None:
    """Or asyncio would report its error as forgotten."""
    if not work.cancelled():
        work.exception()
