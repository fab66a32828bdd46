"""A thought that is being written: where it ends, and what of it is its text."""

from __future__ import annotations

from dataclasses import dataclass

from runner.callformats.block import any_of
from runner.callformats.thoughts import CLOSERS_ALONE, THOUGHTS, Marks

QUOTES = "`'\""


@dataclass(frozen=True, slots=True)
class Ending:
    """Text up to `thought_end` belongs to the thought; the closer ends at `end`, or is not to be seen yet (None)."""

    thought_end: int
    end: int | None = None


class OpenThought:
    """Collects one thought. `marks` None: its opener stood in the prompt, so any closer ends it."""

    def __init__(self, marks: Marks | None) -> None:
        closers = (marks.closes,) if marks is not None else CLOSERS_ALONE
        self._closers = any_of(closers)
        self._longest = max(map(len, closers))
        self._pieces: list[str] = []

    @property
    def written(self) -> str:
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def ending(self, text: str, at: int, before: str, complete: bool) -> Ending:
        """Where the thought ends in `text` from `at`; `before` is the character in front.

        A closer in quotes is spoken of, not used.
        """
        start = at
        while True:
            close = self._closers.search(text, start)
            if close is None:
                held = 0 if complete else min(len(text) - at, self._longest)
                return Ending(len(text) - held)
            quote = text[close.start() - 1] if close.start() else before
            quoted = bool(quote) and quote in QUOTES
            if quoted and close.end() >= len(text) and not complete:
                return Ending(max(at, close.start() - 1))
            if not quoted or text[close.end() : close.end() + 1] != quote:
                return Ending(close.start(), close.end())
            start = close.end()


def without_labels(thought: str) -> str:
    """A thought without openers that stand at its beginning once more, and without its label."""
    while True:
        stripped = thought.lstrip()
        marks = next((marks for marks in THOUGHTS if not marks.leads and stripped.startswith(marks.opens)), None)
        if marks is not None:
            thought = stripped[len(marks.opens) :]
        elif stripped.startswith("thought\n"):
            thought = stripped[len("thought\n") :]
        else:
            return "" if stripped == "thought" else thought
