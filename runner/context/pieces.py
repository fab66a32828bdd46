"""Long units in pieces, so that a summary request tells all of a message and not only its two ends (L5).

A piece is a unit of its own. Only the last one that will be told stands for the transcript row (it has the span): a row
whose other half nobody was told does not count as covered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from runner.context.tokens import Prices
from runner.context.transcript import render, without_data
from runner.conversation.units import AssistantTurn, Reference, Text, Unit, UserTurn

_BORDERS: Final = ("\n\n", "\n", ". ", "。", "! ", "? ", "！", "？", "; ", "；", ", ", "，", " ")
"""Where a text is cut, the best place first."""

_LEAST_ROOM: Final = 100
"""Host tokens below which a request tells too little for any message to be gone through in pieces."""

_LEAST: Final = 80
"""Characters of a text that is not cut any more."""


def in_pieces(
    units: Iterable[Unit], room: int, prices: Prices, *, newest: bool = False
) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """The units as pieces of at most `room` Host tokens, where they can be cut, and for each the index of its unit.

    `newest`: they will be told from the newest to the oldest, so the first piece of a unit has the span.
    """
    made: list[Unit] = []
    origins: list[int] = []
    for index, unit in enumerate(units):
        parts = _with_span(unit, _cut(unit, room, prices), newest=newest)
        made += parts
        origins += [index] * len(parts)
    return tuple(made), tuple(origins)


def _with_span(unit: Unit, parts: list[Unit], *, newest: bool) -> list[Unit]:
    if len(parts) == 1:
        return [unit]
    last = 0 if newest else len(parts) - 1
    return [replace(part, span=unit.span if place == last else None) for place, part in enumerate(parts)]


def _cut(unit: Unit, room: int, prices: Prices) -> list[Unit]:
    if room < _LEAST_ROOM or prices.text(render(unit)) + 2 <= room or (halves := _halves(unit)) is None:
        return [unit]
    return [part for half in halves for part in _cut(half, room, prices)]


def _halves(unit: Unit) -> tuple[Unit, Unit] | None:
    """Two units that say what one says; None where it cannot be cut."""
    if isinstance(unit, UserTurn):
        return _user_halves(unit)
    if unit.text.strip() and unit.calls:
        return replace(unit, calls=(), results=()), replace(unit, text="")
    if len(unit.calls) > 1:
        middle = len(unit.calls) // 2
        first, second = (
            replace(unit, calls=unit.calls[part], results=unit.results[part])
            for part in (slice(middle), slice(middle, None))
        )
        return first, second
    texts = _text_halves(unit.text)
    return (AssistantTurn(texts[0]), AssistantTurn(texts[1])) if texts else None


def _user_halves(turn: UserTurn) -> tuple[Unit, Unit] | None:
    parts = tuple(part for part in turn.parts if not isinstance(part, Reference))
    if len(parts) > 1:
        middle = len(parts) // 2
        return UserTurn(parts[:middle]), UserTurn(parts[middle:])
    if not parts or not isinstance(parts[0], Text) or (texts := _text_halves(parts[0].text)) is None:
        return None
    return UserTurn((Text(texts[0]),)), UserTurn((Text(texts[1]),))


def _text_halves(text: str) -> tuple[str, str] | None:
    """Cut near the middle, between two lines, sentences or words where there is such a place."""
    text = without_data(text)
    if len(text) < 2 * _LEAST:
        return None
    middle, reach = len(text) // 2, len(text) // 4
    for border in _BORDERS:
        at = text.rfind(border, middle - reach, middle + reach)
        if at >= 0:
            middle = at + len(border)
            break
    return text[:middle], text[middle:]
