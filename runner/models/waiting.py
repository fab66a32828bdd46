"""How long a model may keep a run waiting: until its reply begins, and from there to the end (K8, S3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final

from runner.host import clock
from runner.host.cancellation import closed
from runner.host.deadline import Deadline
from runner.models.fallback_order import Lineup
from runner.models.habits import Habits

LEAST, MOST = 10.0, 90.0
"""Seconds that a silent model is given, however little or much time there is."""

SLOW: Final = 120.0
"""Seconds for one that may be thinking where nobody sees it. The Host itself waits no longer."""

_CLOSING: Final = 1.0
"""Seconds that a run waits until what it gave up has ended; then that ends by itself."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds until a reply begins, and from there to its end; None is no limit."""

    first: float
    rest: float | None = None


class OutOfTime(Exception):
    """A reply went beyond one of its limits, so many `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"over {seconds:g} s")
        self.seconds = seconds


def share(left: float | None, models: int) -> float:
    """Seconds for the first event of a reply: `left`, those of the run, divided among so many models (K8)."""
    return MOST if left is None else min(MOST, max(LEAST, left / models))


class FirstEvent:
    """What the models of one run are given until anything comes of a reply; a hanging one gives way (K8)."""

    def __init__(
        self, lineup: Lineup, deadline: Deadline, habits: Callable[[], Habits], *, thinking_hidden: bool
    ) -> None:
        self._lineup = lineup
        self._deadline = deadline
        self._habits = habits
        self._thinking_hidden = thinking_hidden

    def limits(self) -> Limits | None:
        """For the model that answers; None where nobody is left to take over, or nothing shows that it is at work."""
        ref = self._lineup.current
        if self._lineup.is_last or not ref.streams:
            return None
        slow = self._thinking_hidden or ref.level is not None or self._habits().of(ref.id).slow_start
        return Limits(SLOW if slow else self._share())

    def began(self, seconds: float) -> None:
        """A reply of that model began after so many seconds."""
        ref = self._lineup.current
        if ref.streams and seconds > self._share():
            self._habits().learn(ref.id, replace(self._habits().of(ref.id), slow_start=True))

    def _share(self) -> float:
        end = self._deadline.end
        return share(None if end is None else end - clock.now(), len(self._lineup.left))


class Waiting:
    """One reply that is waited for. `left` takes a stream that was given up and is still closing."""

    def __init__(self, limits: Limits | None, left: set[asyncio.Task[None]]) -> None:
        self._limits = limits
        self._left = left
        self._asked_at = clock.now()
        self._timer: asyncio.TimerHandle | None = None
        self._given_up: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.began_after: float | None = None
        if limits is not None:
            self._set(limits.first)

    @property
    def over(self) -> bool:
        """Whether nobody waits for the rest: a stream that goes on after it was closed must not be heard."""
        return self._given_up.done()

    def begins(self) -> None:
        """The first event is here."""
        self.began_after = clock.now() - self._asked_at
        if self._timer is not None:
            self._timer.cancel()
        if self._limits is not None and self._limits.rest is not None:
            self._set(self._limits.rest)

    async def read(self, reading: Coroutine[None, None, None]) -> None:
        """Wait until the reply is read. Raises OutOfTime, without waiting for long until a hung stream has closed."""
        if self._limits is None:
            return await reading
        task = asyncio.create_task(reading)
        try:
            either: set[asyncio.Future[Any]] = {task, self._given_up}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await closed(task)
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
        if task.done():
            return task.result()
        await self._leave(task)
        raise OutOfTime(self._given_up.result())

    async def _leave(self, task: asyncio.Task[None]) -> None:
        closing = asyncio.create_task(closed(task))
        self._left.add(closing)
        closing.add_done_callback(self._left.discard)
        await asyncio.wait({closing}, timeout=_CLOSING)

    def _set(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_up, seconds)

    def _give_up(self, seconds: float) -> None:
        if not self._given_up.done():
            self._given_up.set_result(seconds)
