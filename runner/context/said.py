"""What people said of what was folded, and what of a gap is shown: whole turns, the newest that fit (L2, L4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runner.context.tokens import Prices
from runner.conversation.units import Text, Unit, UserTurn


def as_said(units: Sequence[Unit]) -> tuple[UserTurn, ...]:
    """What people said in some units, word for word, without their rows: those are told in the summary."""
    texts = (unit.text() for unit in units if isinstance(unit, UserTurn))
    return tuple(UserTurn((Text(text),)) for text in texts if text.strip())


def newest_said(turns: Sequence[UserTurn], room: int, prices: Prices) -> tuple[UserTurn, ...]:
    """The newest turns that fit `room` Host tokens together, oldest first; one that is too long by itself is passed
    over."""
    kept: list[UserTurn] = []
    left = room
    for turn in reversed(turns):
        cost = prices.unit(turn)
        if cost > room:
            continue
        left -= cost
        if left < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def newest_turns(units: tuple[Unit, ...], room: int, prices: Prices) -> tuple[Unit, ...]:
    """The newest units that fit `room` Host tokens together; a user turn is first."""
    start = len(units)
    for index in range(len(units) - 1, -1, -1):
        room -= prices.unit(units[index])
        if room < 0:
            break
        start = index if isinstance(units[index], UserTurn) else start
    return units[start:]
