"""Names of files and people in the prompt: foreign words that must not look like anything else (S7)."""

from __future__ import annotations

from runner.conversation.cut import head, sendable
from runner.guards import defang

NAME_LIMIT = 120
"""Characters of a file name that reach the model."""


def one_line(name: str | None, limit: int = NAME_LIMIT) -> str:
    """A name on one line, without the brackets that frame it, harmless and bounded; empty when there is none."""
    plain = " ".join(sendable(name or "").replace("[", "(").replace("]", ")").split())
    return defang(head(plain, limit))
