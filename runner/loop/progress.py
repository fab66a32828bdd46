"""Short notices while the person in the chat has to wait (C6, `progress-notices`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runner.channel.visible import Visible
from runner.host import clock

TOOL_PATIENCE = 5.0
"""Seconds a tool may take before the chat is told that it is still running."""

SUMMARY_PATIENCE = 2.0
"""Seconds a compaction may take before the chat is told that a summary is being made."""


class Progress:
    """Shows passing notices: each stands in snapshots only, below what was said, and never in the completed message."""

    def __init__(self, visible: Visible, show: Callable[[str], None], *, wanted: bool) -> None:
        self._visible = visible
        self._show = show
        self._wanted = wanted

    @contextmanager
    def notice(self, text: str, after: float) -> Iterator[None]:
        """While the body runs longer than `after` seconds, show `text`; take it back when the body ends."""
        if not self._wanted:
            yield
            return
        timer = asyncio.get_running_loop().call_later(after, self._put, text)
        try:
            yield
        finally:
            timer.cancel()
            if timer.when() <= clock.now():
                self._show(self._visible.text)

    def _put(self, text: str) -> None:
        self._show(f"{self._visible.text}\n\n{text}" if self._visible.shown else text)
