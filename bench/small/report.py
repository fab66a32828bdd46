"""Tables of Q5 as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, its columns as wide as they must be."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    made = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    made.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(made)
