"""Whether a run goes in circles, judged by what its calls bring (K9; for small models S3, `small/circles.py`). Pure.

An action may repeat while its result changes: "run the tests" after each edit is work, the same edit with the same
result five times over is a circle. So is A, B, A, B.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

LONGEST_CYCLE = 5
"""Calls of the longest cycle that is looked for; in a reply of more calls, as many as it has."""

TOLD_AT, CONCLUDED_AT = 3, 5
"""How often a call that acts, or a cycle of such calls, may stand behind itself with the same results: the third time
the model is told, the fifth is the last."""

READS_ALLOWED = 20
"""Identical results of one call that is known to read only: polling is no circle so soon."""

IDLE_ROUNDS = 5
"""Rounds in a row in which nothing could be run."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One finished call: what was asked, what came, whether the tool only reads."""

    call: str
    result: str
    reads: bool = False

    @classmethod
    def of(cls, name: str, arguments: str, *result: str, failed: bool, reads: bool) -> Seen:
        """From a call as it stands in the history; only hashes are kept. The order of keys does not matter. Failures
        count as one: their words vary. `result`: what came, pictures included."""
        return cls(_digest(name, _ordered(arguments)), "failed" if failed else _digest(*result), reads)


@dataclass(slots=True)
class Calls:
    """The finished calls since somebody spoke, oldest first."""

    _seen: list[Seen] = field(default_factory=list)

    def clear(self) -> None:
        self._seen.clear()

    def add(self, seen: Seen) -> None:
        self._seen.append(seen)

    def times_read(self, seen: Seen) -> int:
        """How often this very call has brought this very result, wherever that was."""
        return self._seen.count(seen)

    def times_acted(self, longest: int = LONGEST_CYCLE) -> int:
        """How often the newest calls that act, in a cycle of one to `longest`, stand behind one another with the same
        results: 1 where nothing repeats, 0 without such a call."""
        acts = [each for each in self._seen if not each.reads]
        return max((_times(acts, length) for length in range(1, min(longest, len(acts)) + 1)), default=0)


def _times(acts: Sequence[Seen], length: int) -> int:
    newest, times = acts[-length:], 1
    while acts[-length * (times + 1) : -length * times] == newest:
        times += 1
    return times


class Verdict(Enum):
    """What the newest round means."""

    GO_ON = "the run gets somewhere"
    TELL = "the model is told"
    REPEATED = "the run concludes: the same calls bring the same results"
    IDLE = "the run concludes: nothing could be run any more"


@dataclass(slots=True)
class LoopDetection:
    """The upper bound of every profile (K9)."""

    _calls: Calls = field(default_factory=Calls)
    _idle: int = 0
    _told: bool = False

    def renew(self) -> None:
        """Somebody said something new: what was done before may be done again."""
        self._calls.clear()
        self._idle, self._told = 0, False

    def after(self, seen: Sequence[Seen], *, ran: bool) -> Verdict:
        """Judge a round that has just finished. `seen`: its calls and what they brought; `ran`: any of them was run."""
        self._idle = 0 if ran else self._idle + 1
        times = 0
        for each in seen:
            self._calls.add(each)
            if each.reads and self._calls.times_read(each) >= READS_ALLOWED:
                return Verdict.REPEATED
            if not each.reads:
                times = max(times, self._calls.times_acted(max(LONGEST_CYCLE, len(seen))))
        if times >= CONCLUDED_AT:
            return Verdict.REPEATED
        if self._idle >= IDLE_ROUNDS:
            return Verdict.IDLE
        return self._tells(times)

    def _tells(self, times: int) -> Verdict:
        """Once for each circle."""
        told, self._told = self._told, times >= TOLD_AT or (times == 0 and self._told)
        return Verdict.TELL if self._told and not told else Verdict.GO_ON


def _ordered(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:24]
