"""The faults: which line of the code is changed to what, which rule that breaks, and which test notices.

Each `*.toml` beside this module holds those of one letter of rules:

    [[mutant]]
    rule = "K4"
    breaks = "a call resent under its id runs twice"
    file = "runner/models/reply.py"
    old = '''if known.arguments == arguments:'''
    new = '''if False:'''
    test = "tests/models/test_reply.py::test_K4_a_call_resent_at_another_index_runs_once"

`old` stands exactly once in `file`. `test` is the id of a pytest test, or of a whole parametrised test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `name` tells it apart in reports: its rule and what it breaks."""

    rule: str
    breaks: str
    file: str
    old: str
    new: str
    test: str

    @property
    def name(self) -> str:
        return f"{self.rule}: {self.breaks}"

    def applied(self, text: str) -> str:
        """The text of the file with the fault in it. Raises ValueError where `old` does not stand exactly once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: the text to change stands {found} times in {self.file}, not once")
        return text.replace(self.old, self.new)


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    rule: str
    breaks: str
    file: str
    old: str
    new: str
    test: str


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    mutant: list[_Entry]


def all_mutants() -> tuple[Mutant, ...]:
    """Every fault of every table, by letter. Raises pydantic.ValidationError for a table of another shape."""
    tables = (_Table.model_validate(tomllib.loads(path.read_text("utf-8"))) for path in sorted(FOLDER.glob("*.toml")))
    return tuple(Mutant(**entry.model_dump()) for table in tables for entry in table.mutant)


# Makes one fault in a copy of the project and runs the test that has to notice it.

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".demo", "dist", "build", "__pycache__", ".*_cache", ".hypothesis", "node_modules"
)
_SECONDS = 120
"""So long a test may take with a fault in the code, which may well be one that never ends: then it was noticed."""

_TESTS_FAILED = 1
"""The exit code of pytest when tests ran and some failed; every higher one means that none could be run."""


class Verdict(StrEnum):
    """What became of a fault."""

    KILLED = "killed"
    SURVIVED = "survived"
    NO_TEST = "its test could not be run"
    NOT_MADE = "does not apply"


class Copy:
    """A copy of the project in which faults are made, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def judge(self, mutant: Mutant) -> Verdict:
        """Make the fault, run its test, take the fault out."""
        path = self._folder / mutant.file
        try:
            sound = path.read_text("utf-8")
            broken = mutant.applied(sound)
        except (FileNotFoundError, ValueError):
            return Verdict.NOT_MADE
        path.write_text(broken, "utf-8")
        try:
            return self._run(mutant.test)
        finally:
            path.write_text(sound, "utf-8")

    def _run(self, test: str) -> Verdict:
        try:
            code = self._pytest(test)
        except subprocess.TimeoutExpired:
            return Verdict.KILLED
        if code == 0:
            return Verdict.SURVIVED
        return Verdict.KILLED if code == _TESTS_FAILED else Verdict.NO_TEST

    def _pytest(self, test: str) -> int:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self._folder)}
        done = subprocess.run(
            command, cwd=self._folder, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
        return done.returncode


def copied(folder: Path) -> Copy:
    """The project as it stands, copied into a folder that is not there yet."""
    shutil.copytree(ROOT, folder, ignore=_LEFT_OUT)
    return Copy(folder)
