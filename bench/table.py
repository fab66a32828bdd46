"""Results as rows: what was measured, what a bare runner needs, what ours needs, and what ours may need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Row:
    """One measurement. `bare`: of the pass-through runner, None where it cannot do it. `limit`: ours at most."""

    section: str
    scenario: str
    measure: str
    bare: float | None
    ours: float
    limit: float | None = None
    unit: str = ""

    @property
    def holds(self) -> bool | None:
        return None if self.limit is None else self.ours <= self.limit

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "holds": self.holds}


_HEAD = ("", "scenario", "measure", "bare", "ours", "at most", "holds")


def text_of(rows: Sequence[Row], *, head: bool = True) -> str:
    """The rows as a Markdown table; without its head, as lines of one."""
    lines = [*([_HEAD] if head else []), *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    made = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    if head:
        made.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(made)


def _cells(row: Row) -> tuple[str, ...]:
    holds = {None: "", True: "yes", False: "NO"}[row.holds]
    measure = f"{row.measure} ({row.unit})" if row.unit else row.measure
    return (row.section, row.scenario, measure, number(row.bare), number(row.ours), number(row.limit), holds)


def number(value: float | None) -> str:
    """A number as people read it; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
