"""What each step of the event loop costs, and on whose side of the wire it was made.

The plugin and the Host of a measured scene share one loop. Every task knows its side (`tests.host.host.SIDE`); the CPU
time of its steps is added up there. A thread looks where long steps spend their time.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Generator
from contextvars import Context
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tests.host.host import SIDE

_LOOK_EVERY = 0.002
_OURS = ("/runner/", "/config/", "/components/")
_SDK = ("/langbot_plugin/", "/pydantic/")


@dataclass(frozen=True)
class Stall:
    """A long step of the plugin's side. `ours`: the milliseconds of it spent in this project's own code."""

    milliseconds: float
    ours: float
    where: str


@dataclass
class Meter:
    """CPU seconds by side; `stalls` of the plugin's side that took `noted` seconds of CPU or more."""

    noted: float = 0.001
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    stalls: list[Stall] = field(default_factory=list)
    _started: float | None = None
    _looks: Counter[tuple[bool, str]] = field(default_factory=Counter)
    _done: threading.Event = field(default_factory=threading.Event)
    _main: int = field(default_factory=threading.get_ident)

    def install(self, loop: asyncio.AbstractEventLoop, *, watch: bool = False) -> None:
        """Measure all tasks of this loop from now on; `watch`: also look where long steps spend their time."""

        def make(owner: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None) -> asyncio.Task[Any]:
            return asyncio.Task(_Timed(coro, self), loop=owner, context=context)

        loop.set_task_factory(make)
        if watch:
            threading.Thread(target=self._look, daemon=True).start()

    def close(self) -> None:
        self._done.set()

    def step(self, do: Any, *arguments: Any) -> Any:
        side, start = SIDE.get(), time.thread_time()
        self._started = time.monotonic()
        try:
            return do(*arguments)
        finally:
            self._started = None
            spent = time.thread_time() - start
            self.seconds[side] += spent
            if spent >= self.noted and side == "plugin":
                self._note(spent)
            if self._looks:
                self._looks = Counter()

    def _note(self, spent: float) -> None:
        looks = self._looks
        total = sum(looks.values())
        own = sum(count for (mine, _), count in looks.items() if mine)
        where = looks.most_common(1)[0][0][1] if looks else "not seen"
        self.stalls.append(Stall(spent * 1000, spent * 1000 * own / total if total else 0.0, where))

    def _look(self) -> None:
        while not self._done.wait(_LOOK_EVERY):
            started = self._started
            if started is not None and time.monotonic() - started > _LOOK_EVERY:
                frame = sys._current_frames().get(self._main)
                if frame is not None:
                    self._looks[_owner(frame)] += 1


def _owner(frame: FrameType | None) -> tuple[bool, str]:
    """Whether the innermost frame that is either ours or the SDK's is ours, and where it stands."""
    while frame is not None:
        file = frame.f_code.co_filename
        place = f"{'/'.join(file.split('/')[-2:])}:{frame.f_lineno} {frame.f_code.co_name}"
        if any(part in file for part in _SDK):
            return False, place
        if any(part in file for part in _OURS) and "/tests/" not in file and "site-packages" not in file:
            return True, place
        frame = frame.f_back
    return False, "elsewhere"


class _Timed(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are measured."""

    def __init__(self, coro: Coroutine[Any, Any, Any], meter: Meter) -> None:
        self._coro = coro
        self._meter = meter

    def send(self, value: Any) -> Any:
        return self._meter.step(self._coro.send, value)

    def throw(self, *error: Any) -> Any:
        return self._meter.step(self._coro.throw, *error)

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coro.__await__()
