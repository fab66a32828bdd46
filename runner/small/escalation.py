"""The correction ladder: what a model is told about a bad call, each time something new (S3).

1 a valid example · 2 other tools, and another sampling · 3 the tool is off for this message · 4 an answer in words is
asked for · 5 the run stops. Counted per tool; a valid call of the tool sets it back. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from runner.conversation.cut import head

MOST_SLIPS = 12
"""Bad calls of any tools in one run: beyond that it stops, whatever names the model makes up."""

_PROBLEM_CHARACTERS = 600


class Rung(IntEnum):
    """How far a tool has come on the ladder."""

    EXAMPLE = 1
    DIVERT = 2
    OFF = 3
    ANSWER = 4
    STOP = 5


@dataclass(frozen=True, slots=True)
class Correction:
    """`text` goes to the model; `resample`: its next reply is sampled otherwise; `off`: a tool that is now off."""

    text: str
    rung: Rung
    resample: bool = False
    off: str | None = None


@dataclass(slots=True)
class Ladder:
    """The slips of one run. `off` are the tools that are not offered any more for this message."""

    off: set[str] = field(default_factory=set)
    _slips: dict[str, int] = field(default_factory=dict)
    _all: int = 0
    _last: str = ""
    _given: int = 0

    def valid(self, tool: str) -> None:
        """A call of this tool could be run: its count begins anew."""
        self._slips.pop(tool, None)

    def renew(self) -> None:
        """Somebody said something new: everything may be tried again."""
        self.off.clear()
        self._slips.clear()
        self._all = 0

    def slip(self, tool: str, problem: str, *, example: str, others: Sequence[str]) -> Correction:
        """A bad call. `tool` is the name as written ("" when none can be read), `problem` says what was wrong with it.

        `example` is a valid call, as the model should write it; `others` are tools to use instead.
        """
        self._all += 1
        count = self._slips[tool] = self._slips.get(tool, 0) + 1
        rung = Rung(min(count, Rung.STOP)) if self._all < MOST_SLIPS else Rung.STOP
        off = tool if rung is Rung.OFF and tool else None
        if off:
            self.off.add(off)
        text = _words(rung, tool, head(problem, _PROBLEM_CHARACTERS), example, others)
        return Correction(self.unlike_before(text), rung, rung in (Rung.DIVERT, Rung.ANSWER), off)

    def unlike_before(self, text: str) -> str:
        """The text, numbered where it would repeat the one before it word for word: a chant corrects nothing."""
        self._given += 1
        if text == self._last:
            text = f"{text} (This is message {self._given} about it; do something else this time.)"
        self._last = text
        return text


def _words(rung: Rung, tool: str, problem: str, example: str, others: Sequence[str]) -> str:
    named = tool[:80] or "a tool"
    instead = " or ".join(others[:3])
    match rung:
        case Rung.EXAMPLE:
            return f"Error: {problem} Nothing was run. Try again. This is how a right call looks:\n{example}"
        case Rung.DIVERT:
            way = f"use {instead} instead" if instead else "answer from what you know"
            return f"Error: {problem} Nothing was run. Leave {named} for now and {way}."
        case Rung.OFF:
            way = f"Go on with {instead}, or answer" if instead else "Answer"
            return f"Error: {named} is switched off for this message, since its calls were wrong three times. {way}."
        case _:
            return (
                f"Error: {named} stays off. Write no more calls of it: tell the user what you know and what is missing."
            )
