"""What a run says, as parts in order: text as fragments, one message for each step, one last part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from local.outcomes import VALUE
from local.parts import Error, Finish, MessageStart, Part, Text, ToolCall, ToolError, ToolResult
from runner.host.events import Log, ToolFinished, ToolStarted


class Speaking:
    """Takes what the loop says and hands it out; after the last part nothing is taken any more."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Part] = asyncio.Queue()
        self._shown = ""
        self._ended = False
        self._begins = True
        self._blank = True

    async def parts(self) -> AsyncIterator[Part]:
        """Every part, up to the last."""
        while True:
            part = await self._queue.get()
            yield part
            if isinstance(part, Finish | Error):
                return

    def step(self) -> None:
        """The model is about to be asked: at the beginning, and after tools, that is another message (S3)."""
        if self._begins:
            self._begins, self._blank = False, True
            self._put(MessageStart())

    def show(self, text: str) -> None:
        """All visible text of the run so far; what is new of it goes out."""
        new = text[_same(self._shown, text) :]
        if self._blank and not new.strip():
            return
        self._shown = text
        if self._blank:
            new = new.lstrip("\n")
        if new:
            self._blank = False
            self._put(Text(new))

    def tool(self, event: ToolStarted | ToolFinished | Log) -> None:
        """A call begins or ends."""
        if isinstance(event, ToolStarted):
            self._put(ToolCall(event.call_id, event.name, event.arguments))
        elif isinstance(event, ToolFinished):
            self._begins = True
            self._put(_outcome(event))

    def end(self, last: Finish | Error) -> None:
        """The last part; only the first one counts."""
        if not self._ended:
            self._queue.put_nowait(last)
            self._ended = True

    def _put(self, part: Part) -> None:
        if not self._ended:
            self._queue.put_nowait(part)


def _same(shown: str, text: str) -> int:
    """How much of what was shown stands: white space that a model left behind before it gave up is taken back."""
    if text.startswith(shown):
        return len(shown)
    return next((at for at, (one, other) in enumerate(zip(shown, text, strict=False)) if one != other), len(text))


def _outcome(event: ToolFinished) -> ToolResult | ToolError:
    if event.error is not None:
        return ToolError(event.call_id, event.name, event.error)
    return ToolResult(event.call_id, event.name, (event.result or {}).get(VALUE))
