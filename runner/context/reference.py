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
    """The units with the knowledge in the question's turn cut to its share of `free` Host tokens; it goes altogether
    where the question needs all. The same tuple where nothing has to change.
    """
    turn = units[question] if question is not None else None
    if question is None or not isinstance(turn, UserTurn):
        return units
    part = next((part for part in turn.parts if isinstance(part, Reference)), None)
    if part is None:
        return units
    beside = prices.unit(turn) - prices.part(part)
    smaller = shrunk(part, min(free // SHARE, free - beside), prices)
    if smaller is part:
        return units
    kept: tuple[Part, ...] = tuple(each for each in turn.parts if each is not part)
    if smaller is not None:
        place = turn.parts.index(part)
        kept = (*kept[:place], smaller, *kept[place:])
    return (*units[:question], replace(turn, parts=kept), *units[question + 1 :])


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
