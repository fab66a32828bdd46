"""Cutting texts to tokens: head and tail stay, a note says how much is gone (F3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from runner.conversation import cut

LEAST_TEXT: Final = 48
"""Tokens below which a cut text says nothing any more, so that nobody may take it for told."""


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; see `cut.clip`."""
    return cut.clip(text, limit).text


def clip_tokens(text: str, tokens: int, estimate: Callable[[str], int]) -> str:
    """At most `tokens` by `estimate`, or the bare note where `tokens` is below its price."""
    size = estimate(text)
    if size <= tokens:
        return text
    note = cut.characters_cut(len(text))
    limit = len(text)
    for _ in range(6):
        limit = int(limit * min(0.9, tokens / max(1, size)))
        if limit <= len(note):
            break
        shorter = clip(text, limit)
        size = estimate(shorter)
        if size <= tokens:
            return shorter
    return note.strip()
