"""Child processes of a bring-up: each in a group of its own, watched until it is ready, stopped with all it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from demo.errors import DemoError
from weights.errors import one_line

GRACE_SECONDS = 8.0


class Child:
    """One running program; its output goes to `log`."""

    def __init__(self, name: str, argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        self._started: list[psutil.Process] = []
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            # A session of its own: Ctrl-C in the terminal reaches us alone, and we stop the children in order.
            self._process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """The last line that the program wrote, or ''."""
        lines = [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return one_line(lines[-1]) if lines else ""

    def ask_to_end(self) -> None:
        """Send it SIGTERM, and note the processes it has started, which may outlive it."""
        self._started = self._family()
        if self.exit_code is None:
            self._process.send_signal(signal.SIGTERM)

    def end(self, grace: float) -> None:
        """Wait `grace` seconds for it to end, then kill it and every process that descends from it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        family = {*self._started, *self._family()}
        self._kill_group()
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=5)
        self._process.wait()

    def _family(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def _kill_group(self) -> None:
        # The leader may be gone while others of its group live on; the group id stays theirs alone until they end.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class Children:
    """The programs of one bring-up, stopped when the block ends."""

    def __init__(self) -> None:
        self._running: list[Child] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str, argv: Sequence[str], cwd: Path, env: Mapping[str, str], log: Path) -> Child:
        child = Child(name, argv, cwd, env, log)
        self._running.append(child)
        return child

    def end(self, child: Child, grace: float = GRACE_SECONDS) -> None:
        """Stop one of them before the others, within about `grace` seconds."""
        child.ask_to_end()
        child.end(grace)
        self._running.remove(child)

    def dead(self) -> list[Child]:
        """Programs that ended although nobody stopped them."""
        return [child for child in self._running if child.exit_code is not None]

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Ask all to end, then see to it that they have, within about `grace` seconds."""
        for child in reversed(self._running):
            child.ask_to_end()
        end = time.monotonic() + grace
        while self._running:
            self._running[-1].end(max(0.0, end - time.monotonic()))
            self._running.pop()


def wait_until(what: str, ready: Callable[[], bool], seconds: float, child: Child | None = None) -> None:
    """Ask `ready` until it says yes; an OSError or ValueError from it means "not yet".

    Raises DemoError when `seconds` are over, or at once when `child` has ended.
    """
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, ValueError):
            if ready():
                return
        if child is not None and child.exit_code is not None:
            raise DemoError(
                f"{what} ended with exit code {child.exit_code} before it was ready: {child.last_words()} ({child.log})"
            )
        if time.monotonic() > end:
            where = f"; its log is {child.log}" if child is not None else ""
            raise DemoError(f"{what} was not ready after {seconds:.0f} s{where}")
        time.sleep(0.1)
