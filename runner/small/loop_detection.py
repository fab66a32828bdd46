"""Whether a small model goes in circles: it is told once, and stopped soon (S3). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from runner.loop.loop_detection import Calls, Seen

READS_ALLOWED = 8
"""Identical results of one read: then it stops too."""


class Circle(Enum):
    """What the newest call means."""

    NONE = "the run gets somewhere"
    FLAG = "the model is told, once"
    STOP = "the run stops"


@dataclass(slots=True)
class Circles:
    """The finished calls of one run, oldest first."""

    _calls: Calls = field(default_factory=Calls)
    _flagged: bool = False

    def renew(self) -> None:
        """Somebody said something new: what was done before may be done again."""
        self._calls.clear()
        self._flagged = False

    def add(self, seen: Seen) -> Circle:
        """Judge a call that has just finished.

        An action may repeat while its result changes. Reads are exempt until their result came eight times.
        """
        self._calls.add(seen)
        if seen.reads:
            return Circle.STOP if self._calls.times_read(seen) >= READS_ALLOWED else Circle.NONE
        if self._calls.times_acted() < 2:
            return Circle.NONE
        if self._flagged:
            return Circle.STOP
        self._flagged = True
        return Circle.FLAG
