"""What waits to be told to the Host, in order and no faster than the Host can take it (C6).

The Host spends 70–140 ms on each snapshot, so the newest one replaces those not yet sent, and the pause between two
grows with the text. Everything else goes out at once.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable

from runner.host.events import Answer, Completed, Event, Failed, Log, Snapshot

BASE_PAUSE = 0.3
"""Seconds between two snapshots of a short text, at least."""

CHARS_PER_EXTRA_SECOND = 40_000
"""A text of so many characters adds one second to the pause."""

FRAME_BUDGET = 900_000
"""Bytes of JSON one snapshot or answer may take: a frame of the wire holds 1 MiB, envelope included."""


HEARTBEAT = 90.0
"""Seconds of silence after which something is said: without a deadline the Host ends a run after 300 (G3)."""


def pause_after(text: str) -> float:
    """Seconds to wait after this snapshot before the next one."""
    return BASE_PAUSE + len(text) / CHARS_PER_EXTRA_SECOND


def wire_bytes(value: object) -> int:
    """Bytes of a text or other JSON value on the wire: ASCII escapes, 6 bytes a Chinese character, 12 an emoji."""
    return len(json.dumps(value))


class Outbox:
    """One writer (the run), one reader (`events`). Snapshots may be dropped, nothing else ever is."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._deltas = True
        self._watch: Callable[[str], None] | None = None
        self._watched: str | None = None
        self._queue: deque[Event] = deque()
        self._later: list[Log] = []
        self._pending: str | None = None
        self._sent_text: str | None = None
        self._sequence = 0
        self._told = 0
        self._due = 0.0
        self._full = False
        self._finished = False
        self._hushed = False
        self._spoken = clock()
        self._changed = asyncio.Event()

    @property
    def last_shown(self) -> str | None:
        """The text of the newest snapshot that went out, None before the first."""
        return self._sent_text or self._watched

    def divert(self, watch: Callable[[str], None] | None, *, deltas: bool) -> None:
        """`watch` is told each text as it becomes due, at the pace of snapshots; without `deltas` none of them goes out
        (J2).
        """
        self._watch, self._deltas = watch, deltas

    def show(self, text: str) -> None:
        """All visible text so far; replaces an older one that has not gone out yet."""
        if self._hushed:
            return
        if self._pending is None:
            self._changed.set()
        self._pending = text

    def hush(self) -> None:
        """Say nothing but the last words from here on: the Host closes a stopped run at its first result (G2)."""
        self._hushed = True
        self._queue.clear()
        self._later.clear()
        self._pending = None

    def flush(self, *lines: Log) -> int | None:
        """Let a waiting snapshot and, behind it, these lines go out now: the run is about to end, and the Host may as
        well begin with them.

        Returns the place, among all results of the run (from 1), of the last one: a Host that has come to it has shown
        the text. None when nothing was shown, so there is nothing to wait for.
        """
        if self._pending is not None:
            self._take_pending()
        self._queue.extend(self._taken_later())
        for line in lines:
            self.post(line)
        self._changed.set()
        return self._told + len(self._queue) if self._sequence and lines else None

    @property
    def finished(self) -> bool:
        return self._finished

    def post(self, event: Event) -> None:
        """Anything but a snapshot, in order."""
        if self._hushed:
            return
        self._queue.append(event)
        self._changed.set()

    def post_marked(self, line: Log) -> int:
        """As `post`; returns the line's place among all results of the run (from 1)."""
        self.post(line)
        return self._told + len(self._queue)

    def post_later(self, line: Log) -> None:
        """A line that nobody waits for: it goes out behind the first text, or before the last words (D1)."""
        if not self._hushed:
            self._later.append(line)

    def finish(self, *last: Event) -> None:
        """The last events of the run, back to back: nothing is awaited between them (G1).

        A card that shows something is brought up to the answer first, so that the two agree; not so after `hush`.
        """
        self._pending = None
        answer = next((event for event in last if isinstance(event, Answer)), None)
        if answer is not None and self._sequence and not self._hushed:
            self._queue.extend(self._snapshot(answer.text))
        self._queue.extend(self._taken_later())
        self._queue.extend(last)
        self._finished = True
        self._changed.set()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Everything, as it becomes due; ends after the terminal event."""
        while True:
            event = await self._next()
            yield event
            if isinstance(event, Completed | Failed):
                return

    async def _next(self) -> Event:
        while True:
            if self._pending is not None and not self._queue and self._clock() >= self._due:
                self._take_pending()
            if not self._queue and not self._hushed and self._clock() - self._spoken >= HEARTBEAT:
                self._queue.append(Log("still working", "debug"))
            if self._queue:
                self._spoken = self._clock()
                self._told += 1
                return self._queue.popleft()
            await self._wait()

    def _take_pending(self) -> None:
        """The waiting text is due: tell who watches, and queue its snapshot."""
        text, self._pending = self._pending or "", None
        if self._watch is not None and text.strip():
            self._due = self._clock() + pause_after(text)
            self._watched = text
            self._watch(text)
        self._queue.extend(self._snapshot(text))

    async def _wait(self) -> None:
        """Sleep until something is posted, the pending snapshot is due, or the silence has lasted too long."""
        self._changed.clear()
        if self._hushed:
            await self._changed.wait()  # for the last words, however long closing what is open takes
            return
        until = self._spoken + HEARTBEAT
        if self._pending is not None:
            until = min(until, self._due)
        try:
            async with asyncio.timeout(max(0.0, until - self._clock())):
                await self._changed.wait()
        except TimeoutError:
            return

    def _snapshot(self, text: str) -> list[Snapshot | Log]:
        """The snapshot of a text; none when it says nothing new, or when no frame can hold it."""
        if not self._deltas:
            return []
        # Content and all_content both carry the text, so it counts twice.
        if self._full or text == self._sent_text or not text.strip():
            return []
        if 2 * wire_bytes(text) > FRAME_BUDGET:
            self._full = True  # visible text only grows: no later snapshot fits either
            return []
        self._sent_text = text
        self._sequence += 1
        self._due = self._clock() + pause_after(text)
        return [Snapshot(text, self._sequence), *self._taken_later()]

    def _taken_later(self) -> list[Log]:
        later, self._later = self._later, []
        return later
