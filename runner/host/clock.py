"""The clock of a run: the event loop's own, in seconds."""

from __future__ import annotations

import asyncio


def now() -> float:
    """Seconds on the running loop's clock; it never jumps."""
    return asyncio.get_running_loop().time()
