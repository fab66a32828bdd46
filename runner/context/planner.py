"""Where to cut a conversation: units in, plan out, nothing awaited (F3, F4, F7).

```
fits?  ──yes──▶ KEEP
 │ no
stubs for old large results ──enough──▶ STUB
 │ not enough
older units ▶ summary; kept: a recent tail, all input of this run, the newest results ──▶ SUMMARISE
 │ what cannot go is still too large
newest results cut, then the newest input cut visibly; else InputTooLarge
```
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from runner.context.stubs import clip_results, clip_user, stub, without_pictures
from runner.context.tokens import Prices
from runner.conversation.units import Unit, UserTurn, join_users, newest_user
from runner.host.errors import InputTooLarge

TAIL: Final = 0.3
"""Share of what the fixed part leaves that the recent tail may take, however large the setting."""

SAID: Final = 10
"""What people said last stands beside a summary, up to this fraction of the input budget (L4)."""

SAID_MOST: Final = 20_000
"""Host tokens of it at most."""

RESULTS: Final = 8
"""The newest results may always take this fraction of the space: a model that sees none of them would ask again."""

LEAST_INPUT: Final = 64
"""Tokens the newest input needs at least."""

WINDOW_SETTING: Final = "context-window-tokens"


class Step(StrEnum):
    KEEP = "keep"
    STUB = "stub"
    SUMMARISE = "summarise"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Host tokens of what no plan can shrink: the system message without its summary, the tool schemas."""

    system: int
    tools: int = 0

    @property
    def all(self) -> int:
        return self.system + self.tools


@dataclass(frozen=True, slots=True)
class Limits:
    """All in Host tokens. `input`: the budget; `recent`: tail to keep; `summary`: most a summary may take."""

    input: int
    recent: int
    summary: int

    def summary_room(self, fixed: Fixed) -> int:
        """What a new summary may take here: the setting, a fifth of the budget, a third of what is free."""
        return max(0, min(self.summary, self.input // 5, (self.input - fixed.all) // 3))

    @property
    def said(self) -> int:
        """What messages of people may take beside a summary (L4)."""
        return min(self.input // SAID, SAID_MOST)


@dataclass(frozen=True, slots=True)
class Plan:
    """`older` goes into the summary (original units, oldest first), `kept` is the next request's conversation.

    `tokens` is the planned size of the whole request in Host tokens, `summary_room` included where there is a summary.
    `question` is where this run's first user turn now stands; -1 without one. `turn`: Host tokens of a turn on average,
    what people say and the replies to it.
    """

    step: Step
    kept: tuple[Unit, ...]
    older: tuple[Unit, ...] = ()
    tokens: int = 0
    summary_room: int = 0
    question: int = -1
    clipped: bool = False
    turn: int = 0
    order: tuple[tuple[Unit, bool], ...] = ()
    """All units as they stood, and whether each is among `kept`."""
    asked: int = 0
    """Where the question stood among them."""

    def with_rest(self, count: int) -> tuple[tuple[Unit, ...], int]:
        """`kept` with the newest `count` units of `older` in their places, and where the question then stands."""
        gone = len(self.older) - count
        units: list[Unit] = []
        question = 0
        for place, (unit, stays) in enumerate(self.order):
            gone -= not stays
            if stays or gone < 0:
                units.append(unit)
            if place == self.asked:
                question = len(_input_joined(units)) - 1
        return _input_joined(units), question


def is_full(tokens: int, turn: int, limit: int) -> bool:
    """Whether a request of so many tokens has no room for another turn of that length: the one threshold that says when
    to compact (L10). Behind the answer that is done, and stubs alone suffice where it then is not so any more."""
    return tokens + turn > limit


def foldable(
    units: tuple[Unit, ...], question: int, *, fixed: Fixed, limits: Limits, prices: Prices, full: bool, leaving: int
) -> int:
    """How many of the oldest units are folded behind an answer (L1): those that leave the fetch limit and, where the
    request is `full`, all but a recent tail. What belongs to this run stays: its rows are not written yet."""
    first = _turn_start(units, min(leaving, question), question)
    if not full:
        return first
    sizes = [prices.unit(unit) for unit in units]
    kept = _recent_turns(units, sizes, first, question, tail_room(limits, fixed) - sum(sizes[question:]))
    return min(kept, default=question)


def plan(
    units: tuple[Unit, ...],
    *,
    fixed: Fixed,
    limits: Limits,
    prices: Prices,
    summary: int = 0,
    question: int | None = None,
    leaving: int = 0,
) -> Plan:
    """Fit a conversation into the budget.

    `summary`: Host tokens of a summary already in the system message. `question`: index of this run's first user turn
    (default: the newest); user turns from there on always stay. `leaving`: so many of the oldest units go where
    anything goes, because their rows leave the fetch limit (F6); it is moved to the next user turn. Raises
    InputTooLarge.
    """
    asked = newest_user(units) if question is None else question
    sizes = [prices.unit(unit) for unit in units]
    total = fixed.all + summary + sum(sizes)
    first = _turn_start(units, min(leaving, max(asked, 0)), asked)
    if total <= limits.input:
        return Plan(Step.KEEP, units, tokens=total, summary_room=summary, question=asked)
    if first == 0:
        stubbed = _stub_old(units, sizes, limits, fixed)
        tokens = fixed.all + summary + prices.units(stubbed)
        if not is_full(tokens, min(_turn_size(units, sizes), limits.input // 5), limits.input):
            return Plan(Step.STUB, stubbed, tokens=tokens, summary_room=summary, question=asked)
    frame = _Frame(fixed, limits, prices)
    bare = _with_recent_pictures(units, sizes, tail_room(limits, fixed))
    sizes = [
        size if unit is before else prices.unit(unit) for unit, before, size in zip(bare, units, sizes, strict=True)
    ]
    return _summarise(bare, sizes, first, asked, summary, frame)


def tail_room(limits: Limits, fixed: Fixed) -> int:
    """Host tokens of recent conversation that stay when the rest is summarised."""
    free = limits.input - fixed.all - limits.summary_room(fixed)
    return max(0, min(limits.recent, int(free * TAIL)))


@dataclass(frozen=True, slots=True)
class _Frame:
    fixed: Fixed
    limits: Limits
    prices: Prices


def _turn_start(units: tuple[Unit, ...], index: int, asked: int) -> int:
    """The first user turn at or after `index`, never behind the question: a request starts with what a person said."""
    while 0 < index < asked and not isinstance(units[index], UserTurn):
        index += 1
    return index


def _turn_size(units: tuple[Unit, ...], sizes: list[int]) -> int:
    return sum(sizes) // max(1, sum(isinstance(unit, UserTurn) for unit in units))


def _stub_old(units: tuple[Unit, ...], sizes: list[int], limits: Limits, fixed: Fixed) -> tuple[Unit, ...]:
    recent = _recent_from(sizes, tail_room(limits, fixed))
    return tuple(stub(unit) if index < recent else unit for index, unit in enumerate(units))


def _with_recent_pictures(units: tuple[Unit, ...], sizes: list[int], room: int) -> tuple[Unit, ...]:
    """Pictures of tools stand in user turns, which stay: only the recent ones do, or a few screenshots fill it all."""
    recent = _recent_from(sizes, room)
    return tuple(
        without_pictures(unit) if index < recent and isinstance(unit, UserTurn) else unit
        for index, unit in enumerate(units)
    )


def _recent_from(sizes: list[int], room: int) -> int:
    """Index from which the last units together fit `room`; the last one always counts as recent."""
    index = len(sizes)
    while index > 0 and (index == len(sizes) or sizes[index - 1] <= room):
        index -= 1
        room -= sizes[index]
    return index


def _summarise(units: tuple[Unit, ...], sizes: list[int], first: int, asked: int, summary: int, frame: _Frame) -> Plan:
    kept_indexes = _kept(units, sizes, first, asked, tail_room(frame.limits, frame.fixed))
    older = tuple(unit for index, unit in enumerate(units) if index not in kept_indexes)
    room = frame.limits.summary_room(frame.fixed) if older else summary
    kept = _input_joined([unit for index, unit in enumerate(units) if index in kept_indexes])
    question = len(_input_joined([unit for index, unit in enumerate(units[: asked + 1]) if index in kept_indexes])) - 1
    fitted, dropped = _fit(kept, frame.limits.input - frame.fixed.all - room, frame)
    if dropped and not older:
        room = frame.limits.summary_room(frame.fixed)
        fitted, dropped = _fit(kept, frame.limits.input - frame.fixed.all - room, frame)
    tokens = frame.fixed.all + room + frame.prices.units(fitted)
    step = Step.SUMMARISE if older or dropped else Step.STUB
    start = max(asked, 0)
    order = tuple((unit, index in kept_indexes) for index, unit in enumerate(units))
    turn = _turn_size(units, sizes)
    return Plan(step, fitted, older + dropped, tokens, room, question, fitted != kept, turn, order, start)


def _kept(units: tuple[Unit, ...], sizes: list[int], first: int, asked: int, room: int) -> set[int]:
    """Indexes that stay: input of this run, the newest unit, then backwards whole turns while `room` lasts."""
    start = max(asked, 0)
    kept = {index for index in range(start, len(units)) if isinstance(units[index], UserTurn)}
    kept.add(len(units) - 1)
    room -= sum(sizes[index] for index in kept)
    for index in range(len(units) - 1, start, -1):
        if index in kept:
            continue
        room -= sizes[index]
        if room < 0:
            return kept
        kept.add(index)
    return kept | _recent_turns(units, sizes, first, start, room)


def _recent_turns(units: tuple[Unit, ...], sizes: list[int], first: int, end: int, room: int) -> set[int]:
    """Whole turns (a user turn with the replies to it) right before `end` that fit `room`."""
    kept: set[int] = set()
    turn: set[int] = set()
    for index in range(end - 1, first - 1, -1):
        room -= sizes[index]
        if room < 0:
            break
        turn.add(index)
        if isinstance(units[index], UserTurn):
            kept |= turn
            turn = set()
    return kept


def _input_joined(units: list[Unit]) -> tuple[Unit, ...]:
    """What was said to this run as one turn where nothing stands between; earlier messages stay units of their own."""
    result: list[Unit] = []
    for unit in units:
        last = result[-1] if result else None
        if isinstance(unit, UserTurn) and isinstance(last, UserTurn) and last.span is unit.span is None:
            result[-1] = join_users(last, unit)
        else:
            result.append(unit)
    return tuple(result)


def _fit(kept: tuple[Unit, ...], space: int, frame: _Frame) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
    """`kept` in at most `space` tokens, and what had to leave it for the summary. Raises InputTooLarge.

    Too large can only be one user turn and the newest reply with its results: everything else went before. The results
    give way first, but leave a reader something to go on; the input is cut only where it is too large by itself.
    """
    if frame.prices.units(kept) <= space:
        return kept, ()
    _check_floor(space, frame)
    *spoken, last = kept
    if isinstance(last, UserTurn):
        return _fit_users(kept, space, frame), ()
    smaller = clip_results(last, max(space - frame.prices.units(spoken), space // RESULTS), frame.prices)
    if smaller is None:
        return _fit(tuple(spoken), space, frame)[0], (last,)
    return (*_fit_users(tuple(spoken), space - frame.prices.unit(smaller), frame), smaller), ()


def _check_floor(space: int, frame: _Frame) -> None:
    if space < LEAST_INPUT:
        fixed = frame.fixed
        part = "list of tools" if fixed.tools > fixed.system else "system prompt"
        raise InputTooLarge(part, WINDOW_SETTING, max(fixed.tools, fixed.system), frame.limits.input)


def _fit_users(units: tuple[Unit, ...], space: int, frame: _Frame) -> tuple[Unit, ...]:
    if frame.prices.units(units) <= space:
        return units
    *before, last = units
    if isinstance(last, UserTurn) and (bare := without_pictures(last)) is not last:
        return _fit_users((*before, bare), space, frame)
    smaller = clip_user(last, space - frame.prices.units(before), frame.prices) if isinstance(last, UserTurn) else None
    if smaller is None:
        raise InputTooLarge("newest message", WINDOW_SETTING, frame.prices.unit(last), space)
    return (*before, smaller)
