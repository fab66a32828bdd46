"""The process in which LangBot's plugin runtime runs a plugin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from demo.package import Identity
from demo.processes import Child, wait_until

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker process, alive when it was found."""

    process: psutil.Process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def memory(self) -> float:
        """MiB of memory it holds now."""
        return float(self.process.memory_info().rss) / MIB

    @property
    def peak(self) -> float:
        """MiB of memory it held at most, since its start or the last `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024

    def forget_peak(self) -> None:
        """Let `peak` begin anew with what it holds now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5", "ascii")

    def kill(self) -> None:
        """SIGKILL, as the system does when memory runs out."""
        self.process.kill()


def worker_of(runtime: Child, who: Identity) -> Worker:
    """The worker of a plugin, waiting for it. Raises DemoError when the runtime starts none."""
    found: list[psutil.Process] = []

    def lives() -> bool:
        found[:] = [child for child in psutil.Process(runtime.pid).children(recursive=True) if _serves(child, who)]
        return bool(found)

    wait_until(f"the worker of {who.name}", lives, 60, runtime)
    return Worker(found[0])


def _serves(process: psutil.Process, who: Identity) -> bool:
    try:
        words = " ".join(process.cmdline())
        return process.status() != psutil.STATUS_ZOMBIE and f"{who.author}/{who.name}" in words
    except psutil.NoSuchProcess:
        return False
