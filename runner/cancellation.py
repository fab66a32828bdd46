"""Whose cancellation it is: this task's own, or that of something it waits for."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Whether somebody cancelled this very task, rather than something it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
