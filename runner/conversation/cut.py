"""Cutting text without splitting what a reader sees as one character (D4, F3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import regex

_GRAPHEME = regex.compile(r"\X")
_SURE = (
    r"(?<=[\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}\p{GCB=V}\p{GCB=T}])"
    r"(?=[\p{GCB=Other}\p{GCB=RI}\p{GCB=L}\p{GCB=LV}\p{GCB=LVT}])"
    r"|(?<=[\p{GCB=Control}\n])(?=.)"
    r"|(?<=\p{GCB=Extend})(?=\p{Extended_Pictographic})"
)
"""Places where a grapheme ends whatever stands further away (UAX 29). Starting from one keeps the work small, since
finding the borders of a long run of flags takes quadratic time, and right even when the text before is not at hand."""
_SURE_BEFORE = regex.compile(f"(?r){_SURE}", regex.DOTALL)
_SURE_AFTER = regex.compile(_SURE, regex.DOTALL)
_NEAR = 2_048
_UNSENDABLE = regex.compile(r"[\x00\ud800-\udfff]")


def sendable(text: str) -> str:
    """The text without NUL and lone surrogates, which no provider and no database takes."""
    # Nearly every text is sendable, and finding that out by an expression costs ten times as much (Q2).
    return text if "\0" not in text and _encodes(text) else _UNSENDABLE.sub("", text)


def _encodes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def head(text: str, size: int) -> str:
    """A beginning of at most `size` characters that ends between two graphemes.

    It is the longest one, unless more than 2,048 characters before the limit are joined without a sure border.
    """
    if size <= 0:
        return ""
    if len(text) <= size:
        return text
    sure = _SURE_BEFORE.search(text, 0, size + 1)
    end = sure.start() if sure else 0
    if size - end > _NEAR:
        return text[:end]
    # One character more than may stay shows whether the last grapheme ends at the limit or goes on behind it.
    for found in _GRAPHEME.finditer(text, end, size + 1):
        if found.end() > size:
            break
        end = found.end()
    return text[:end]


def tail(text: str, size: int, *, whole: bool = True) -> str:
    """An end of at most `size` characters that begins between two graphemes; as long as `head` would be.

    `whole` False says that `text` itself may begin inside a grapheme; that beginning is then never part of the result.
    """
    if size <= 0:
        return ""
    if len(text) <= size and whole:
        return text
    wanted = max(0, len(text) - size)
    sure = _SURE_BEFORE.search(text, 0, min(wanted + 1, len(text)))
    start = sure.start() if sure else 0 if whole else None
    if start is None or wanted - start > _NEAR:
        sure = _SURE_AFTER.search(text, wanted)
        return text[sure.start() :] if sure else ""
    if start == wanted:
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
