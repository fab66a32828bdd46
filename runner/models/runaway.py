"""Replies that do not end by themselves: a model in a loop, or a server that does not see that its model is done.

Such a reply is left where it is noticed (S3), and nobody is kept waiting for a summary that can be none (F5). Pure.
"""

from __future__ import annotations

from enum import Enum

from callformats import without_thoughts

_CHECK_EVERY = 200
"""Characters between two looks for chants: looking costs the newest 600."""

_CHANT_WINDOW = 600
_CHANT_PERIOD = 150
_BLANKS = 400
_FIRST_MEASURE = 2_000


class Runaway(Enum):
    """Why nothing more is to be expected of a reply."""

    BLANKS = "white space without end"
    CHANT = "the same again and again"
    LENGTH = "longer than it may be"


class Watch:
    """Feed it every fragment of one reply (characters). Linear in the reply.

    `most`: so many characters, thoughts left out, are too many; None: any length will do.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._newest = ""
        self._since: list[str] = []
        self._unchecked = 0
        self._length = 0
        self._measure_at = max(_FIRST_MEASURE, most or 0)
        self._all: list[str] = []
        self.runaway: Runaway | None = None

    def feed(self, fragment: str) -> bool:
        """Whether the reply may be left here."""
        self._since.append(fragment)
        self._unchecked += len(fragment)
        if self._most is not None:
            self._all.append(fragment)
            self._length += len(fragment)
        if self._unchecked >= _CHECK_EVERY:
            self.look()
        return self.runaway is not None

    def look(self) -> Runaway | None:
        """Judge all there is so far."""
        # What is older is let go, so that looking stays linear.
        self._newest = "".join([self._newest, *self._since])[-_CHANT_WINDOW:]
        self._since.clear()
        self._unchecked = 0
        if only_blanks_come(self._newest):
            self.runaway = Runaway.BLANKS
        elif chants(self._newest):
            self.runaway = Runaway.CHANT
        else:
            self.runaway = Runaway.LENGTH if self._is_too_long() else None
        return self.runaway

    def _is_too_long(self) -> bool:
        if self._most is None or self._length < self._measure_at:
            return False
        # Thoughts may take their time; reading them over costs as much as there is, so it is done ever more seldom.
        self._measure_at = self._length + self._length // 4
        return len(without_thoughts("".join(self._all), anywhere=True)) > self._most


def chants(text: str) -> bool:
    """Whether the newest 600 characters only repeat a piece of at most 150. Linear in those."""
    window = text[-_CHANT_WINDOW:]
    return len(window) == _CHANT_WINDOW and _period(window) <= _CHANT_PERIOD


def only_blanks_come(text: str) -> bool:
    """Whether the newest 400 characters are white space: the reply is over, the server does not know it."""
    return len(text) > _BLANKS and not text[-_BLANKS:].strip()


def _period(text: str) -> int:
    """The length of the shortest piece of which the text is a repetition (the last one may be cut)."""
    fails = [0] * len(text)
    for at in range(1, len(text)):
        length = fails[at - 1]
        while length and text[at] != text[length]:
            length = fails[length - 1]
        fails[at] = length + (text[at] == text[length])
    return len(text) - fails[-1]
