"""Whose cancellation it is: this task's own, or that of something it waits for; and ending a task for certain (I4)."""

from __future__ import annotations

import asyncio
from typing import Any

CANCEL_AGAIN = 1.0
"""Seconds after which a task that was cancelled and goes on is cancelled once more.

`asyncio.wait_for` of Python 3.11, with which the SDK waits, loses cancellations, and one of them where nothing of ours
can look: while the SDK confirms a part of a stream, it waits for the next part at once.
"""


def is_cancelled() -> bool:
    """Whether somebody cancelled this very task, rather than something it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def closed(task: asyncio.Task[Any]) -> None:
    """End a task, whatever it is waiting for, and wait until it has ended. Its outcome is not raised."""
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_AGAIN)
    if not task.cancelled():
        task.exception()  # looked at, or asyncio would report it as forgotten
