"""Calls without markers, where a line begins: tried, held back while they may be one, given up at once when not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from callformats.block import DECLINED, UNFINISHED, Block, Format, GaveUp, Names, Outcome, could_begin
from callformats.registry import all_formats, format_named
from callformats.scan import any_of, skip_space
from callformats.tokens import tokens

_STRAY_FENCE = re.compile(r"`{3,8}(?=\s|\Z)")
_BODY_NAME = re.compile(r"[\w./:-]{1,128}")
_MADE_UP = "Observation:"
_CHARGE = 2_000
"""What trying a block whose opener was left out is taken to have cost, in characters, where it came to nothing."""


@dataclass(frozen=True, slots=True)
class Line:
    """A block that begins a line. `end` is behind what may trail it; `made_up`: a result was written after it."""

    format_id: str
    block: Block
    end: int
    made_up: bool = False


@dataclass(frozen=True, slots=True)
class NotLast:
    """A block that would be a call, had nothing stood behind it; text up to `end` is ordinary text. To tell took
    reading up to `read_to`."""

    end: int
    read_to: int


def read_line(text: str, at: int, complete: bool, names: Names, preferred: str | None) -> Line | NotLast | Outcome:
    """The markerless block at `at`, only if nothing but white space and turn tokens follows it (S1)."""
    first = _first(text, at, complete, names, preferred)
    if not isinstance(first, Line):
        return first
    end, found = first.block.end, [*first.block.candidates]
    while True:
        tail = _skip_tail(text, end)
        made_up = text.startswith(_MADE_UP, tail)
        if tail >= len(text) or made_up:
            whole = Line(first.format_id, Block(end, tuple(found)), len(text), made_up)
            return whole if complete or made_up else UNFINISHED
        if not complete and (tokens().may_grow(text, tail) or could_begin(text, tail, (_MADE_UP, "```"))):
            return UNFINISHED
        further = _first(text, tail, complete, names, preferred)
        if further is UNFINISHED:
            return UNFINISHED
        if not isinstance(further, Line):
            return NotLast(first.block.end, tail)
        end = further.block.end
        found += further.block.candidates


def may_begin(char: str, names: Names) -> bool:
    """Whether a line that begins with this character may begin with a call. Most lines are ruled out by it."""
    return char in _beginnings() or names.begins(char)


@cache
def _beginnings() -> frozenset[str]:
    """What blocks without markers begin with, and those whose opener was left out, names of tools apart."""
    return frozenset(char for one in all_formats() for char in (*one.begins, *(inner[0] for inner in one.inner)))


def _first(text: str, at: int, complete: bool, names: Names, preferred: str | None) -> Line | Outcome:
    cost = at
    for one in plain_formats(preferred):
        assert one.plain is not None
        outcome = one.plain(text, at, complete, names)
        if isinstance(outcome, Block):
            return Line(one.id, outcome, outcome.end)
        if outcome is UNFINISHED:
            return UNFINISHED
        if isinstance(outcome, GaveUp):
            cost = max(cost, outcome.read_to)
    body = _body(text, at, complete, names)
    if isinstance(body, GaveUp):
        cost = max(cost, body.read_to)
    return body if isinstance(body, Line) or body is UNFINISHED or cost == at else GaveUp(cost)


@cache
def plain_formats(preferred: str | None) -> tuple[Format, ...]:
    """Formats without markers, the preferred one first."""
    found = [one for one in all_formats() if one.plain is not None]
    if preferred is not None:
        wanted = format_named(preferred)
        found.sort(key=lambda one: one is not wanted)
    return tuple(found)


@cache
def _inner_formats() -> tuple[tuple[str, Format], ...]:
    return tuple((inner, one) for one in all_formats() for inner in one.inner)


@cache
def _inners() -> tuple[str, ...]:
    return tuple(inner for inner, _ in _inner_formats())


def _body(text: str, at: int, complete: bool, names: Names) -> Line | Outcome:
    """A block whose opener the model left out, known by the marker inside it."""
    name = _BODY_NAME.match(text, at)
    written = name[0] if name else ""
    behind = skip_space(text, at + len(written)) if name else at
    knows = bool(written) and names.spells(written)
    declined: Outcome = DECLINED
    for inner, one in _inner_formats() if _inner_stands(text, at, behind, knows) else ():
        if not (text.startswith(inner, at) or (knows and text.startswith(inner, behind))):
            continue
        declined = GaveUp(at + _CHARGE)
        outcome = one.read(one.opens[0] + text[at:], 0, complete)
        if isinstance(outcome, Block) and outcome.candidates:
            if not all(names.knows(found.name) for found in outcome.candidates):
                return declined
            shifted = Block(outcome.end - len(one.opens[0]) + at, outcome.candidates)
            return Line(one.id, shifted, shifted.end)
        if outcome is UNFINISHED:
            return UNFINISHED
    return UNFINISHED if not complete and _may_come(text, at, behind, written, names) else declined


def _inner_stands(text: str, at: int, behind: int, knows: bool) -> bool:
    inner = any_of(_inners())
    return inner.match(text, at) is not None or (knows and inner.match(text, behind) is not None)


def _may_come(text: str, at: int, behind: int, written: str, names: Names) -> bool:
    """Whether the text ends where such a marker, or the name before it, may still be growing."""
    inners = _inners()
    if written and behind >= len(text):
        return names.spells(written) or names.may_grow(written) or could_begin(text, at, inners)
    if written and names.spells(written) and could_begin(text, behind, inners):
        return True
    return at < len(text) and could_begin(text, at, inners)


def _skip_tail(text: str, at: int) -> int:
    """Past white space and tokens of the turn that may stand behind the last block."""
    table = tokens()
    while True:
        at = skip_space(text, at)
        match = _STRAY_FENCE.match(text, at) or table.pattern.match(text, at)
        if match is None or (match.re is table.pattern and match[0] not in table.noise and match[0] != "</s>"):
            return at
        at = match.end()
