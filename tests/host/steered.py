"""A loop whose clock is steered: where everything only waits, the next timer is due at once.

A Host that hangs for three minutes costs a test nothing, and what is asserted of times holds on any machine. Work in
threads is real, so the clock stands still while there is any.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple, Unpack
from unittest import mock

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_THREAD_PAUSE = 0.05
"""Seconds of real time to wait for a thread before it is asked again whether there is one."""


class _Selector(selectors.SelectSelector):
    """Tells the loop that the time it would wait for something has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = 0
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            ready = super().select(_THREAD_PAUSE if self.threads else 0)
            if ready or self.threads:
                return ready
            if timeout is None:
                raise RuntimeError("everything waits, and no timer is set: this would never end")
            self.passed += timeout
            return []
        return super().select(0)


class SteeredLoop(asyncio.SelectorEventLoop):
    """Time passes only where every task waits for it. `time()` begins at 0."""

    def __init__(self) -> None:
        self._steered = _Selector()
        super().__init__(self._steered)
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._steered.passed

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        future = super().run_in_executor(executor, func, *args)
        self._steered.threads += 1
        future.add_done_callback(self._one_thread_less)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Waits in a thread as well, which nothing but this tells."""
        self._steered.threads += 1
        await super().shutdown_default_executor()
        self._steered.threads -= 1

    def _one_thread_less(self, _done: object) -> None:
        self._steered.threads -= 1


def run_steered(work: Coroutine[Any, Any, _T]) -> _T:
    """What `work` comes to on a loop of its own; `time.time()` goes with its clock."""
    with asyncio.Runner(loop_factory=SteeredLoop) as runner, _epoch(runner.get_loop()):
        return runner.run(work)


@contextmanager
def _epoch(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The Host's deadline is a date: dates pass as the loop's time does."""
    began = time.time() - loop.time()
    with mock.patch.object(time, "time", lambda: began + loop.time()):
        yield
