"""A thought that is being written: where it ends, and what of it is its text."""

from __future__ import annotations

from dataclasses import dataclass

from callformats.block import literal_at
from callformats.scan import any_of, next_match, skip_space
from callformats.thoughts import CLOSERS_ALONE, THOUGHTS, Marks

QUOTES = "`'\""
_LABELS = ("thought\n", *(marks.opens for marks in THOUGHTS if not marks.leads))


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
            close = next_match(self._closers, text, start)
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
    at = 0
    while True:
        begins = skip_space(thought, at)
        label = literal_at(thought, begins, _LABELS)
        if label is None:
            rest = thought[at:]
            return "" if rest.lstrip() == "thought" else rest
        at = begins + len(label)
