"""What the Host has been sent and has not dealt with yet (G1).

LangBot takes the results of a run one by one, and showing a text takes it 70 to 500 ms. All the while it claims new
messages for the run, and what it claims after the last look for follow-ups gets no reply. So the run looks only once
its whole text is shown: then nothing but the last words lies between that look and the end.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from runner.host.errors import HostCallFailed
from runner.host.port import Host

FIRST_LOOK = 0.02
"""Seconds before the first question: where an adapter cannot stream, nothing is shown, and the Host has come to the end
of what it was sent by then (L13)."""

FIRST_PAUSE = 0.06
"""Seconds before the second one: no LangBot has shown a text earlier."""

_REST = 0.01
"""Seconds the Host still spends on the result it has come to."""

_GROWTH = 1.5
"""Each further pause is so much longer: the questions hold up the very work that is waited for."""


async def caught_up(host: Host, place: int, *, until: float) -> int:
    """Return once the Host has come to the run's result number `place`, or at `until` (seconds of the event loop): how
    often it was asked, 0 where it did not come to it.

    A Host that cannot tell is not asked again: what is lost is time to look for follow-ups, never the answer (Q4).
    """
    pause, asked = FIRST_PAUSE, 1
    with suppress(TimeoutError, HostCallFailed):
        async with asyncio.timeout_at(until):
            await asyncio.sleep(min(FIRST_LOOK, pause))
            if await host.has_taken(place):
                return asked
            await asyncio.sleep(max(0.0, pause - FIRST_LOOK))
            while not await host.has_taken(place):
                pause, asked = pause * _GROWTH, asked + 1
                await asyncio.sleep(pause)
            await asyncio.sleep(_REST)
            return asked
    return 0
