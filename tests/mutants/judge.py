"""Makes one fault in a copy of the project and runs the test that has to notice it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from tests.mutants.table import ROOT, Mutant

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".demo", "dist", "build", "__pycache__", ".*_cache", ".hypothesis", "node_modules"
)
_SECONDS = 300
"""So long a test may take with a fault in the code, which may well be one that never ends: then it was noticed."""

_TESTS_FAILED = 1
"""The exit code of pytest when tests ran and some failed; every higher one means that none could be run."""


class Verdict(StrEnum):
    """What became of a fault."""

    KILLED = "killed"
    SURVIVED = "survived"
    NO_TEST = "its test could not be run"


class Copy:
    """A copy of the project in which faults are made, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def judge(self, mutant: Mutant) -> Verdict:
        """Make the fault, run its test, take the fault out. Raises ValueError where the fault cannot be made."""
        path = self._folder / mutant.file
        sound = path.read_text("utf-8")
        path.write_text(mutant.applied(sound), "utf-8")
        try:
            return self._run(mutant.test)
        finally:
            path.write_text(sound, "utf-8")

    def passes(self, tests: tuple[str, ...]) -> bool:
        """Whether these tests pass while there is no fault: only then does it mean anything that one falls."""
        return self._pytest(*tests) == 0

    def _run(self, test: str) -> Verdict:
        try:
            code = self._pytest(test)
        except subprocess.TimeoutExpired:
            return Verdict.KILLED
        if code == 0:
            return Verdict.SURVIVED
        return Verdict.KILLED if code == _TESTS_FAILED else Verdict.NO_TEST

    def _pytest(self, *tests: str) -> int:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self._folder)}
        done = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
        return done.returncode


@contextmanager
def copied(folder: Path) -> Iterator[Copy]:
    """The project as it stands, copied into an empty folder; the copy goes with the folder."""
    shutil.copytree(ROOT, folder, ignore=_LEFT_OUT, dirs_exist_ok=True)
    yield Copy(folder)
