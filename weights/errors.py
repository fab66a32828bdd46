"""What can go wrong while packages and models are fetched, as one sentence a newcomer can act on."""

from __future__ import annotations


class StepFailed(RuntimeError):
    """A step failed. The text is one line and names the next step; no traceback is shown for it."""


class Stopped(StepFailed):
    """A step was stopped on request; what was fetched by then is kept for the next attempt."""


def one_line(text: str, limit: int = 300) -> str:
    """`text` with its white space folded, at most `limit` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"
