"""Knowledge gives way first: bounded by the budget before any of the conversation is cut (E2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from runner.context.clipping import clip_tokens
from runner.context.tokens import Prices
from runner.conversation.knowledge import reference
from runner.conversation.units import Part, Passage, Reference, Unit, UserTurn

SHARE: Final = 4
"""Where not all fits, knowledge may take one part in this many of what the fixed part leaves."""

LEAST: Final = 60
"""Host tokens below which a passage says nothing any more."""

_FRAME: Final = 40
"""Host tokens of the lines around one passage."""


def bounded(units: tuple[Unit, ...], question: int | None, free: int, prices: Prices) -> tuple[Unit, ...]:
    """The units with the knowledge in the turns of this run cut to its share of `free` Host tokens, that of the newest
    words first; it goes altogether where a turn needs all. The same tuple where nothing has to change.

    `question`: where this run's first user turn stands; what follows are follow-ups, which have knowledge too (E1).
    """
    if question is None:
        return units
    room, made = free // SHARE, list(units)
    for place in range(len(units) - 1, question - 1, -1):
        turn = units[place]
        if isinstance(turn, UserTurn) and any(isinstance(part, Reference) for part in turn.parts):
            made[place], room = _cut(turn, room, free, prices)
    return units if all(new is old for new, old in zip(made, units, strict=True)) else tuple(made)


def _cut(turn: UserTurn, room: int, free: int, prices: Prices) -> tuple[UserTurn, int]:
    """The turn with its knowledge in at most `room`, and what is left of that; the turn itself where all fits."""
    beside = prices.unit(turn) - sum(prices.part(part) for part in turn.parts if isinstance(part, Reference))
    kept: list[Part] = []
    for part in reversed(turn.parts):
        smaller = shrunk(part, min(room, free - beside), prices) if isinstance(part, Reference) else part
        if isinstance(smaller, Reference):
            cost = prices.part(smaller)
            room, beside = room - cost, beside + cost
        if smaller is not None:
            kept.append(smaller)
    same = len(kept) == len(turn.parts) and all(new is old for new, old in zip(reversed(kept), turn.parts, strict=True))
    return (turn if same else replace(turn, parts=tuple(reversed(kept)))), room


def shrunk(part: Reference, room: int, prices: Prices) -> Reference | None:
    """The best passages that fit `room` Host tokens, the last of them cut visibly; None when none does."""
    if prices.part(part) <= room:
        return part
    kept: list[Passage] = []
    empty = reference((Passage("", ""),))
    left = room - (prices.part(empty) if empty is not None else 0)
    for passage in part.passages:
        left -= _FRAME
        if left < LEAST:
            break
        text = clip_tokens(passage.text, left, prices.text)
        kept.append(replace(passage, text=text))
        left -= prices.text(text)
    smaller = reference(kept)
    return smaller if smaller is not None and prices.part(smaller) <= room else reference(kept[:-1])
