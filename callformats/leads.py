"""What only means something where a line or a reply begins: sentences that open a thought, addressees, code fences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from callformats.thoughts import SELF, THOUGHTS, Marks

_ADDRESSEE = re.compile(r"\s?to=([\w.-]{1,128})<\|message\|>")
_ADDRESSEE_PART = re.compile(r"\s?(?:t|to|to=[\w.-]{0,128}(?:<(?:\|(?:m\w{0,6}\|?)?)?)?)")
_LEADING = tuple(marks for marks in THOUGHTS if marks.leads)
ADDRESSEE = ">>>"
_TO_ALL = ">>>all\n"
_TO_ALL_UNMARKED = "all\n"
FENCE_CHARACTERS = ("`", "~")
"""What the line of a code fence begins with, behind blanks."""
_FENCE = re.compile(r"[ \t]{0,8}(`{3,40}|~{3,40})[^\n`]{0,150}(?:\n|\Z)")
_LONGEST_FENCE_LINE = 200
_LONGEST_LEAD = 64

LEAD_OF = {marks.closes: marks.opens for marks in _LEADING}
"""Which sentence opened the thought that this closer ends."""


class Beginning(Enum):
    NONE = "nothing of the kind"
    UNSURE = "more text may decide"


@dataclass(frozen=True, slots=True)
class Lead:
    """Text up to `end` is none for the user; `thought`: a thought begins there; `to_all`: an answer, by Functionary."""

    end: int
    thought: Marks | None = None
    to_all: bool = False


def lead(text: str, at: int, start: int, complete: bool, *, to_all: bool) -> Lead | Beginning:
    """What a reply begins with. `start` is behind the blanks at `at`; `to_all`: Functionary was asked for, whose
    prompt may hold the mark in front of the addressee."""
    for marks in _LEADING:
        if text.startswith(marks.opens, start):
            return Lead(start + len(marks.opens), marks)
    addressee = _ADDRESSEE.match(text, at)
    if addressee is not None:
        return Lead(addressee.end(), SELF if addressee[1] == "self" else None)
    heads = (_TO_ALL, _TO_ALL_UNMARKED) if to_all else (_TO_ALL,)
    for head in heads:
        if text.startswith(head, start):
            return Lead(start + len(head), to_all=True)
    rest = text[start : start + _LONGEST_LEAD]
    growing = any(opening.startswith(rest) for opening in (*(marks.opens for marks in _LEADING), *heads))
    if not complete and (growing or _ADDRESSEE_PART.fullmatch(text, at) is not None):
        return Beginning.UNSURE
    return Beginning.NONE


def next_addressee(text: str, at: int, limit: int, *, tried: bool) -> int:
    """Where Functionary names the next addressee; -1 when not before `limit`. `tried`: not at `at` itself."""
    here = tried and text.startswith(ADDRESSEE, at)
    return text.find(ADDRESSEE, at + (len(ADDRESSEE) if here else 0), limit)


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that opens or closes a code fence."""

    ticks: str
    line: str


def fence(text: str, at: int, complete: bool) -> Fence | Beginning:
    """The fence line at `at`."""
    match = _FENCE.match(text, at)
    if match is not None and (complete or match[0].endswith("\n")):
        return Fence(match[1], match[0])
    rest = text[at : at + _LONGEST_FENCE_LINE]
    if complete or "\n" in rest or len(rest) >= _LONGEST_FENCE_LINE:
        return Beginning.NONE
    if match is not None or re.fullmatch(r"[ \t]{0,8}(?:`{1,2}|~{1,2})", rest):
        return Beginning.UNSURE
    return Beginning.NONE
