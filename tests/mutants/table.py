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

import tomllib
from dataclasses import dataclass
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
