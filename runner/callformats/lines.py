"""Calls without markers, where a line begins: tried, held back while they may be one, given up at once when not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from runner.callformats.block import DECLINED, UNFINISHED, Block, Format, GaveUp, Names, Outcome, skip_space
from runner.callformats.registry import all_formats, format_named
from runner.callformats.tokens import tokens

_BODY_NAME = re.compile(r"[\w./:-]{1,128}")
_MADE_UP = "Observation:"


@dataclass(frozen=True, slots=True)
class Line:
    """A block that begins a line. `end` is behind what may trail it; `made_up`: a result was written after it."""

    format_id: str
    block: Block
    end: int
    made_up: bool = False


@dataclass(frozen=True, slots=True)
class NotLast:
    """A block that would be a call, had nothing stood behind it; text up to `end` is ordinary text."""

    end: int


def read_line(text: str, at: int, complete: bool, names: Names, preferred: str | None) -> Line | NotLast | Outcome:
    """The markerless block at `at`, only if nothing but white space and turn tokens follows it (S1)."""
    first = _first(text, at, complete, names, preferred)
    if not isinstance(first, Line):
        return first
    run = first
    while True:
        tail = _skip_tail(text, run.block.end)
        if tail >= len(text):
            return Line(run.format_id, run.block, tail) if complete else UNFINISHED
        if text.startswith(_MADE_UP, tail):
            return Line(run.format_id, run.block, len(text), made_up=True)
        if not complete and (tokens().may_grow(text, tail) or _MADE_UP.startswith(text[tail:])):
            return UNFINISHED
        further = _first(text, tail, complete, names, preferred)
        if further is UNFINISHED:
            return UNFINISHED
        if not isinstance(further, Line):
            return NotLast(first.block.end)
        run = Line(run.format_id, Block(further.block.end, run.block.candidates + further.block.candidates), 0)


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
    return GaveUp(cost) if body is DECLINED and cost > at else body


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


def _body(text: str, at: int, complete: bool, names: Names) -> Line | Outcome:
    """A block whose opener the model left out, known by the marker inside it."""
    name = _BODY_NAME.match(text, at)
    written = name[0] if name else ""
    behind = skip_space(text, at + len(written)) if name else at
    knows = bool(written) and names.spells(written)
    waits = not complete and bool(written) and behind >= len(text) and (knows or names.may_grow(written))
    for inner, one in _inner_formats():
        if text.startswith(inner, at) or (knows and text.startswith(inner, behind)):
            outcome = one.read(one.opens[0] + text[at:], 0, complete)
            if isinstance(outcome, Block) and outcome.candidates:
                if not all(names.knows(found.name) for found in outcome.candidates):
                    return DECLINED
                shifted = Block(outcome.end - len(one.opens[0]) + at, outcome.candidates)
                return Line(one.id, shifted, shifted.end)
            if outcome is UNFINISHED:
                return UNFINISHED
        rest = text[at : at + len(inner)]
        waits = waits or (not complete and at + len(rest) >= len(text) and inner.startswith(rest))
        rest = text[behind : behind + len(inner)]
        waits = waits or (not complete and knows and behind + len(rest) >= len(text) and inner.startswith(rest))
    return UNFINISHED if waits else DECLINED


def _skip_tail(text: str, at: int) -> int:
    """Past white space and tokens of the turn that may stand behind the last block."""
    table = tokens()
    while True:
        at = skip_space(text, at)
        match = table.pattern.match(text, at)
        if match is None or (match[0] not in table.noise and match[0] != "</s>"):
            return at
        at = match.end()
