"""Units for a model that takes less: without pictures, or with calls and their results as words (B4, D6, K7)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from runner.conversation.readable import is_readable
from runner.conversation.units import AssistantTurn, Image, Part, Text, Unit, UserTurn

IMAGE_LEFT_OUT: Final = "[A picture was sent here; this model cannot see pictures.]"
"""What the model reads in place of a picture that it refused."""


class Reduced:
    """Units as they are sent in one reduced form. A unit always becomes the same objects: counting goes by identity.

    `blind`: pictures are words; `in_words`: calls and their results are.
    """

    def __init__(self, *, blind: bool, in_words: bool) -> None:
        self._blind = blind
        self._in_words = in_words
        # Keyed by identity; what the key is of is kept, so that its id stays taken.
        self._made: dict[int, tuple[Unit, tuple[Unit, ...]]] = {}
        self._origins: dict[int, tuple[Unit, Unit]] = {}

    def units(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """The units in this form; a reply with calls may become two."""
        return tuple(made for unit in units for made in self._of(unit))

    def parts(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """Parts of the system message in this form."""
        return tuple(map(_blind_part, parts)) if self._blind else tuple(parts)

    def back(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """The units that these were made of; those that were made since, such as stubs, are their own."""
        found: list[Unit] = []
        for unit in units:
            origin = self._origins.get(id(unit), (unit, unit))[1]
            if not found or found[-1] is not origin:
                found.append(origin)
        return tuple(found)

    def _of(self, unit: Unit) -> tuple[Unit, ...]:
        known = self._made.get(id(unit))
        if known is None:
            known = self._made[id(unit)] = (unit, self._make(unit))
            for made in known[1]:
                self._origins.setdefault(id(made), (made, unit))
        return known[1]

    def _make(self, unit: Unit) -> tuple[Unit, ...]:
        if isinstance(unit, UserTurn):
            return (_blind(unit),) if self._blind else (unit,)
        return _in_words(unit) if self._in_words and unit.calls else (unit,)


def _in_words(turn: AssistantTurn) -> tuple[Unit, ...]:
    """A reply with calls as a reply without, and what its tools said as words of the user's side."""
    told = (
        Text(f"[{call.name} was called with {call.arguments} and returned:]\n{result.text}")
        for call, result in zip(turn.calls, turn.results, strict=True)
    )
    said = (AssistantTurn(turn.text, author=turn.author, span=turn.span),) if is_readable(turn.text) else ()
    return (*said, UserTurn(tuple(told), turn.span))


def _blind(unit: UserTurn) -> UserTurn:
    """The same unit object where it holds no picture."""
    if not any(isinstance(part, Image) for part in unit.parts):
        return unit
    return replace(unit, parts=tuple(map(_blind_part, unit.parts)))


def _blind_part(part: Part) -> Part:
    return Text(IMAGE_LEFT_OUT) if isinstance(part, Image) else part
