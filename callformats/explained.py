"""Calls that are explained (Sd): in a code fence or back-ticks, with prose behind it, a call is text.

A fenced call as the whole reply or as its last block is meant, also if several stand one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from callformats.block import DECLINED, UNFINISHED, Block, Undecided
from callformats.found import Found
from callformats.scan import skip_space
from callformats.tokens import tokens

_FENCE_LINE = re.compile(r"(?:`{3,40}|~{3,40})[^\n`]{0,60}(?:\n|\Z)|`{1,2}")


@dataclass(frozen=True, slots=True)
class Marked:
    """Blocks with markers that stand one behind the other, up to `end`. `final`: the turn is over with them."""

    end: int
    found: tuple[Found, ...]
    final: bool = False

    @classmethod
    def of(cls, block: Block, format_id: str) -> Marked:
        return cls(block.end, tuple(Found(one, format_id, True) for one in block.candidates), block.final)


@dataclass(frozen=True, slots=True)
class Example:
    """Text up to `end` only shows what a call looks like."""

    end: int


ReadBlock = Callable[[int, str, bool], Marked | Undecided]
"""(index, opener there, whether the text is complete) → the block there, if it is one."""


def meant(text: str, first: Marked, complete: bool, read: ReadBlock, *, inline: bool) -> Marked | Example | Undecided:
    """What a call in a fence turns out to be, with those behind it. `inline`: one back-tick stands before it; without
    one behind it that says nothing."""
    if inline and not text.startswith("`", first.end):
        return first if complete or first.end < len(text) else UNFINISHED
    end, found = first.end, [*first.found]
    while True:
        at = _behind(text, end)
        if at >= len(text):
            return Marked(end, tuple(found), first.final) if complete else UNFINISHED
        if not complete and tokens().may_grow(text, at):
            return UNFINISHED
        literal = tokens().pattern.match(text, at)
        if literal is None:
            return Example(end)
        if literal[0] not in tokens().openers:
            return Marked(end, tuple(found), first.final)
        further = read(at, literal[0], complete)
        if not isinstance(further, Marked):
            return Example(end) if further is DECLINED else further
        end = further.end
        found += further.found


def _behind(text: str, at: int) -> int:
    """Past white space, lines of fences, back-ticks and tokens of the turn."""
    while True:
        at = skip_space(text, at)
        ticks = _FENCE_LINE.match(text, at)
        match = ticks or tokens().pattern.match(text, at)
        if match is None or (ticks is None and match[0] not in tokens().noise and match[0] != "</s>"):
            return at
        at = match.end()
