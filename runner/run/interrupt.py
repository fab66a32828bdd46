"""Noticing that the Host wants this run to stop (G2).

Polling is cheap insurance: once a second while a run waits, and ten times a second over all runs of the worker. A poll
that fails or hangs changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from runner.host.errors import HostCallFailed, RunCancelled
from runner.host.port import Host

INTERVAL = 1.0
"""Seconds between two polls of one run."""

_POLL_LIMIT = 3.0
"""Seconds after which a poll without an answer is given up."""

_PER_SECOND = 10

_SESSION_GONE = "not found or expired"
"""The Host's words for a run it does not know any more."""


class PollBudget:
    """At most ten polls a second, shared by every run of this worker in the order they ask: where there are more runs,
    each is polled less often, none never.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=_PER_SECOND)

    def turn(self) -> float:
        """Take the next free place; the seconds until it."""
        now = at = self._clock()
        if self._recent:
            at = max(at, self._recent[-1])
        if len(self._recent) == _PER_SECOND:
            at = max(at, self._recent[0] + 1.0)
        self._recent.append(at)
        return at - now


async def watch(host: Host, budget: PollBudget) -> None:
    """Poll until the Host asks for a stop, then raise RunCancelled. Never returns."""
    while True:
        await asyncio.sleep(INTERVAL)
        await asyncio.sleep(budget.turn())
        if await _asked_to_stop(host):
            raise RunCancelled


async def _asked_to_stop(host: Host) -> bool:
    try:
        async with asyncio.timeout(_POLL_LIMIT):
            return await host.cancel_requested()
    except HostCallFailed as failure:
        # The Host has ended the run, and its word to us was lost on the way: nobody waits for an answer any more.
        return _SESSION_GONE in failure.text
    except TimeoutError:
        return False  # the next poll will tell
