"""What the person in the chat sees: langbot/pkg/pipeline/process/stream_results.py (coalescing),
process/handlers/chat.py, wrapper/wrapper.py, respback/respback.py, pipelinemgr.py:_check_output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk

FAILURE_HINT = "Agent runner execution failed."
UNAVAILABLE_HINT = "Agent runner temporarily unavailable. Please try again."

Delivered = Message | MessageChunk


@dataclass(eq=False)
class Card:
    """One message in the chat. A stream adapter rewrites it with each text; `final`: it was closed."""

    texts: list[str] = field(default_factory=list)
    final: bool = False
    files: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.texts[-1] if self.texts else ""


class RunFailed(Exception):
    """The Host's RunnerExecutionError: the chat sees a hint, never this text."""

    def __init__(self, text: str, *, code: str | None = None, retryable: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.retryable = retryable


async def coalesce(results: AsyncIterator[Delivered]) -> AsyncIterator[Delivered]:
    """Merges a final delta with the completed message behind it when the message repeats it or is its end."""
    waiting: MessageChunk | None = None
    shown = ""
    async for result in results:
        if waiting is not None:
            merged = _merge(waiting, result)
            if merged is None:
                yield waiting
            else:
                result = merged
            waiting, shown = None, ""
        if isinstance(result, Message):
            shown = ""
            yield result
            continue
        if result.content is None or isinstance(result.content, str):
            shown = result.all_content if result.all_content is not None else result.content or shown
            result = result.model_copy(update={"all_content": shown})
        if result.is_final:
            waiting = result
        else:
            yield result
    if waiting is not None:
        yield waiting


def _merge(chunk: MessageChunk, result: Delivered) -> Delivered | None:
    """The one update that stands for both, or None when they are two."""
    text = chunk.all_content if chunk.all_content is not None else chunk.content
    if not isinstance(result, Message) or result.role != chunk.role:
        return None
    if (result.tool_calls or []) != (chunk.tool_calls or []):
        return None
    both_texts = isinstance(text, str) and isinstance(result.content, str)
    is_end = both_texts and bool(result.content) and str(text).endswith(str(result.content))
    if text and result.content != text and not is_end:
        return None
    return result.model_copy(update={"content": text}) if is_end else result


class Chat:
    """One adapter's view of one run. `streaming` False: an adapter that cannot stream gets the last result only."""

    def __init__(self, *, streaming: bool, seconds: float = 0.0) -> None:
        self.cards: list[Card] = []
        self.notice: str | None = None
        self.updates = 0
        self._streaming = streaming
        self._seconds = seconds
        self._open: Card | None = None

    async def deliver(self, results: AsyncIterator[Delivered]) -> None:
        """Consumes a run's messages; `seconds` pass for each text shown."""
        try:
            if self._streaming:
                async for result in coalesce(results):
                    await self._show(result)
            else:
                await self._show_last(results)
        except RunFailed as failure:
            self._fail(failure)
            raise

    async def _show(self, result: Delivered) -> None:
        final = True
        if isinstance(result, MessageChunk):
            final = result.is_final
            if result.all_content is not None:
                result = result.model_copy(update={"content": result.all_content})
        if result.tool_calls:
            final = False
        card = self._card()
        if result.role == "assistant" and (result.content or result.attachments):
            card.texts.append(_text(result))
            card.files.extend(_files(result))
            card.final = final
            self.updates += 1
            await asyncio.sleep(self._seconds)
        if final and not result.tool_calls:
            self._open = None

    async def _show_last(self, results: AsyncIterator[Delivered]) -> None:
        last: Delivered | None = None
        async for result in results:
            last = result
        if last is None or last.role != "assistant" or not (last.content or last.attachments):
            return
        self.cards.append(Card([_text(last)], final=True, files=_files(last)))
        self.updates += 1

    def _card(self) -> Card:
        if self._open is None:
            self._open = Card()
            self.cards.append(self._open)
        return self._open

    def _fail(self, failure: RunFailed) -> None:
        """The hint takes the place of the text of the newest card, which stays unfinished
        (chat.py:ChatMessageHandler, pipelinemgr.py:_check_output)."""
        self.notice = UNAVAILABLE_HINT if failure.retryable else FAILURE_HINT
        if self._streaming and self.cards:
            self.cards[-1].texts.append(self.notice)
        else:
            self.cards.append(Card([self.notice], final=True))


def _text(result: Delivered) -> str:
    """The plain text an adapter shows: files ride beside it."""
    content = result.content
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    return content or ""


def _files(result: Delivered) -> list[str]:
    return [str(getattr(component, "name", "") or component.type) for component in result.attachments or ()]
