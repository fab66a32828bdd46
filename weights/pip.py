"""pip as a child process: progress on stderr, and its failures as one sentence.

Runs before anything is installed, so only the standard library is used here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from weights.errors import StepFailed, Stopped, one_line

# Words of pip, urllib3 and the operating system. Read in order: a full disk may also look like a broken download.
_CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("no space left on the disk", re.compile(r"No space left|Errno 28|Disk quota", re.I)),
    (
        "no network (pip cannot reach the package index)",
        re.compile(
            r"NewConnectionError|ConnectTimeout|ReadTimeout|Connection (refused|reset|aborted|broken)"
            r"|Name or service not known|name resolution|getaddrinfo|Network is unreachable|Max retries exceeded"
            r"|ProxyError|SSLError|Failed to establish",
            re.I,
        ),
    ),
    ("the package index does not have it", re.compile(r"No matching distribution|Could not find a version", re.I)),
)
RETRIES = "2"
_POLL = 0.2
"""Seconds between two looks whether a child has ended by itself."""

_STEPS_A_LINE = 25
"""Where no terminal shows them, one step in so many is told."""

_STEP = re.compile(r"^\s*(Collecting|Downloading|Building wheel|Installing collected packages|Saved)\b.*")


def cause(output: str) -> str:
    """Why pip failed: a known cause, or pip's own last error line."""
    for sentence, pattern in _CAUSES:
        if pattern.search(output):
            return sentence
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    lines = errors or [line for line in output.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "pip said nothing"


def run(
    python: str,
    arguments: Sequence[str],
    log: Path,
    purpose: str,
    show: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Run `python -m pip` with `arguments`; `show` gets a short line for each step; everything goes to `log`.

    Raises StepFailed with one line when pip fails, Stopped when `stop` is set before it has ended.
    """
    command = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments, "--retries", RETRIES]
    output: list[str] = []
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as sink,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as child,
    ):
        assert child.stdout is not None
        if stop is not None:
            threading.Thread(target=_end_on, args=(stop, child), daemon=True).start()
        for line in child.stdout:
            sink.write(line)
            output.append(line)
            if _STEP.match(line):
                show(one_line(line.split(" (from ")[0], 100))
    if child.returncode != 0 and stop is not None and stop.is_set():
        raise Stopped(f"stopped before it could {purpose}; start again to go on")
    if child.returncode != 0:
        raise StepFailed(f"could not {purpose}: {cause(''.join(output))}; pip's words are in {log}")


def _end_on(stop: threading.Event, child: subprocess.Popen[str]) -> None:
    """End the child once `stop` is set; ends with the child."""
    while child.poll() is None:
        if stop.wait(_POLL):
            child.terminate()
            return


def require_space(folder: Path, need_bytes: int, purpose: str) -> None:
    """Raise StepFailed unless the disk that will hold `folder` has `need_bytes` free."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < need_bytes:
        sizes = f"{need_bytes // 2**20} MiB needed in {folder}, {free // 2**20} MiB free"
        raise StepFailed(f"not enough disk space to {purpose}: {sizes}")


class StepLine:
    """Short progress on stderr: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._tty = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        self._count += 1
        if self._tty:
            print(f"\r\x1b[K{self._prefix} {text}", end="", file=sys.stderr, flush=True)
        elif self._count % _STEPS_A_LINE == 1:
            print(f"{self._prefix} {text}", file=sys.stderr, flush=True)

    def done(self) -> None:
        if self._tty and self._count:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
