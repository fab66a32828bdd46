"""How a failed call reads to a model: `Error [code]: …` (S3)."""

from __future__ import annotations

import re

_PREFIX = re.compile(r"Error \[([a-z_]{1,32})\]: ")


def prefix(code: str) -> str:
    """What stands before the words of a failure."""
    return f"Error [{code}]: "


def split(text: str) -> tuple[str | None, str]:
    """The code of a failure and its words; None for a result that is none."""
    found = _PREFIX.match(text)
    return (found[1], text[found.end() :]) if found else (None, text)
