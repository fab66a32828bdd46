"""What can go wrong while a LangBot is brought up, as one sentence a newcomer can act on."""

from __future__ import annotations


class DemoError(RuntimeError):
    """A step failed. The text is one line and names the next step; no traceback is shown for it."""


def one_line(text: str, limit: int = 300) -> str:
    """`text` with its white space folded, at most `limit` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
