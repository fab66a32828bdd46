"""Cutting text without splitting what a reader sees as one character (D4, F3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import regex

_GRAPHEME = regex.compile(r"\X")
# Between two characters without any joining property there is always a border, whatever stands around them. Starting
# from such a place keeps the work small, and right even when the text before it is not at hand.
_SURE_BEFORE = regex.compile(r"(?r)(?<=\p{GCB=Other})(?=\p{GCB=Other})")
_SURE_AFTER = regex.compile(r"(?<=\p{GCB=Other})(?=\p{GCB=Other})")
_UNSENDABLE = regex.compile(r"[\x00\ud800-\udfff]")


def sendable(text: str) -> str:
    """The text without NUL and lone surrogates, which no provider and no database takes."""
    return _UNSENDABLE.sub("", text)


def head(text: str, size: int) -> str:
    """The longest beginning of at most `size` characters that ends between two graphemes."""
    if size <= 0:
        return ""
    if len(text) <= size:
        return text
    sure = _SURE_BEFORE.search(text, 0, size)
    end = sure.start() if sure else 0
    # One character more than may stay shows whether the last grapheme ends at the limit or goes on behind it.
    for found in _GRAPHEME.finditer(text, end, size + 1):
        if found.end() > size:
            break
        end = found.end()
    return text[:end]


def tail(text: str, size: int, *, whole: bool = True) -> str:
    """The longest end of at most `size` characters that begins between two graphemes.

    `whole` False says that `text` itself may begin inside a grapheme; that beginning is then never part of the result.
    """
    if size <= 0:
        return ""
    if len(text) <= size and whole:
        return text
    wanted = max(0, len(text) - size)
    sure = _SURE_BEFORE.search(text, 0, min(wanted + 1, len(text)))
    if sure is None and not whole:
        sure = _SURE_AFTER.search(text, wanted)
        if sure is None:
            return ""
    start = sure.start() if sure else 0
    if start >= wanted:
        return text[start:]
    for found in _GRAPHEME.finditer(text, start):
        if found.start() >= wanted:
            return text[found.start() :]
    return ""


def characters_cut(count: int) -> str:
    """The note that stands where characters were taken out."""
    return f"\n[… {count:,} characters cut …]\n"


@dataclass(frozen=True, slots=True)
class Clipped:
    """`text` is bounded; `cut` is how many characters of the original are not in it."""

    text: str
    cut: int


def clip(text: str, limit: int, note: Callable[[int], str] = characters_cut) -> Clipped:
    """Head and tail of a text, the note between them included in `limit` (characters).

    Two thirds of the room go to the head. Where not even the note fits, the head alone stays. Linear time.
    """
    if len(text) <= limit:
        return Clipped(text, 0)
    room = limit - len(note(len(text)))
    if room <= 0:
        beginning = head(text, limit)
        return Clipped(beginning, len(text) - len(beginning))
    end = tail(text, room // 3)
    beginning = head(text, room - len(end))
    cut = len(text) - len(beginning) - len(end)
    return Clipped(beginning + note(cut) + end, cut)
