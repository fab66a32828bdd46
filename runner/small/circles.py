"""Whether a model goes in circles, judged by what its calls bring (S3). Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum

LONGEST_CYCLE = 5
READS_ALLOWED = 8
"""Identical results of one read: then it stops too."""


class Circle(Enum):
    """What the newest call means."""

    NONE = "the run gets somewhere"
    FLAG = "the model is told, once"
    STOP = "the run stops"


@dataclass(frozen=True, slots=True)
class Seen:
    """One finished call: what was asked, what came, whether it failed, whether the tool only reads."""

    call: str
    result: str
    failed: bool = False
    reads: bool = False

    @classmethod
    def of(cls, name: str, arguments: str, result: str, *, failed: bool, reads: bool) -> Seen:
        """From a call as it stands in the history; only hashes are kept. Failures count as one: their words vary."""
        return cls(_digest(name, arguments), "failed" if failed else _digest(result), failed, reads)


@dataclass(slots=True)
class Circles:
    """The finished calls of one run, oldest first."""

    _seen: list[Seen] = field(default_factory=list)
    _flagged: bool = False

    def renew(self) -> None:
        """Somebody said something new: what was done before may be done again."""
        self._seen.clear()
        self._flagged = False

    def add(self, seen: Seen) -> Circle:
        """Judge a call that has just finished.

        An action may repeat while its result changes. Reads are exempt until their result came eight times.
        """
        self._seen.append(seen)
        if seen.reads:
            same = sum(1 for each in self._seen if (each.call, each.result) == (seen.call, seen.result))
            return Circle.STOP if same >= READS_ALLOWED else Circle.NONE
        if not self._repeats():
            return Circle.NONE
        if self._flagged:
            return Circle.STOP
        self._flagged = True
        return Circle.FLAG

    def _repeats(self) -> bool:
        """Whether the newest calls with their results are those before them, in a cycle of one to five."""
        acts = [(each.call, each.result) for each in self._seen if not each.reads]
        for length in range(1, LONGEST_CYCLE + 1):
            if len(acts) >= 2 * length and acts[-length:] == acts[-2 * length : -length]:
                return True
        return False


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:24]
