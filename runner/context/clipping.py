"""Cutting a text visibly: head and tail stay, a note says how much is gone, no grapheme is split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import regex

_GRAPHEME = regex.compile(r"\X")
_LOOK: Final = 256
"""Characters looked at on each side of a cut; a longer cluster is not text anybody wrote."""


def boundaries(text: str, at: int) -> tuple[int, int]:
    """The last grapheme boundary at or before `at` and the first at or after it."""
    if at <= 0 or at >= len(text):
        edge = max(0, min(at, len(text)))
        return edge, edge
    start = _safe_start(text, at)
    if start == at:
        return at, at
    end = min(len(text), at + _LOOK)
    before = start
    for cluster in _GRAPHEME.finditer(text, start, end):
        if cluster.end() >= at:
            return (cluster.end(), cluster.end()) if cluster.end() == at else (before, cluster.end())
        before = cluster.end()
    return before, end


def _safe_start(text: str, at: int) -> int:
    # Between two ASCII letters or spaces there is always a boundary, so reading clusters from there cannot go wrong.
    for index in range(at, max(0, at - _LOOK), -1):
        if text[index - 1].isascii() and text[index].isascii() and text[index - 1] != "\r":
            return index
    return max(0, at - _LOOK)


def omission(characters: int) -> str:
    """The visible note of a cut."""
    return f"\n[… {characters} characters left out …]\n"


def clip(text: str, limit: int, *, head: float = 0.6) -> str:
    """At most `limit` characters, or the bare note where that is longer; `head` is the share of the beginning."""
    if len(text) <= limit:
        return text
    room = max(0, limit - len(omission(len(text))))
    first = boundaries(text, int(room * head))[0]
    last = boundaries(text, len(text) - (room - first))[1]
    return text[:first] + omission(last - first) + text[last:]


def clip_tokens(text: str, tokens: int, estimate: Callable[[str], int], *, head: float = 0.6) -> str:
    """At most `tokens` by `estimate`, or the bare note where `tokens` is below its price."""
    size = estimate(text)
    if size <= tokens:
        return text
    limit = len(text)
    for _ in range(6):
        limit = int(limit * min(0.9, tokens / max(1, size)))
        cut = clip(text, limit, head=head)
        size = estimate(cut)
        if size <= tokens:
            return cut
    return omission(len(text)).strip()
