"""What the stream reader notes down on its way: candidates, what is wrong, and the names it may meet."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from callformats.block import Candidate
from callformats.offers import Offers
from callformats.reading import Call, Fault, Refusal
from callformats.verdict import Judge


@dataclass(slots=True)
class Found:
    """A candidate and how it stood in the reply."""

    candidate: Candidate
    format_id: str
    marked: bool


class Findings:
    """The candidates of one reply so far, and the faults of its text. A run of them ends where text is shown."""

    def __init__(self) -> None:
        self._all: list[Found] = []
        self._run_start = 0
        self._run_starts: set[int] = set()
        self._faults: list[Refusal] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def run(self) -> Sequence[Found]:
        """The candidates behind the last text that was shown."""
        return self._all[self._run_start :]

    def end_run(self) -> None:
        self._run_start = len(self._all)
        self._run_starts.add(self._run_start)

    def add(self, found: Found) -> None:
        """One more; arguments alone behind a name alone complete that call."""
        last = self._all[-1] if len(self._all) > self._run_start else None
        one = found.candidate
        if not one.name and isinstance(one.arguments, dict) and last is not None and last.candidate.arguments is None:
            mended = replace(last.candidate, arguments=one.arguments, raw=last.candidate.raw + one.raw, mended=True)
            self._all[-1] = Found(mended, last.format_id, last.marked)
            return
        self._all.append(found)

    def extend(self, found: Sequence[Found]) -> None:
        self._all.extend(found)

    def fault(self, fault: Fault) -> None:
        """Says, once, what is wrong beside the candidates."""
        if all(known.fault is not fault for known in self._faults):
            self._faults.append(Refusal(fault))

    def ruled(self, judge: Judge, openers: Set[str]) -> tuple[tuple[Call, ...], tuple[Refusal, ...]]:
        """The calls, and what is refused: candidates first.

        An opener behind a call, and then the end, is no candidate: it was meant for the closer. A call that stands
        right behind the same call is its echo (Sc): without its opener it is none, else it is noted.
        """
        calls: list[Call] = []
        refusals: list[Refusal] = []
        goes_on = False
        for place, one in enumerate(self._all):
            ruling = judge.rule(one.candidate, one.format_id)
            goes_on = goes_on and place not in self._run_starts
            if not isinstance(ruling, Call):
                if not calls or one.candidate.raw.strip() not in openers:
                    refusals.append(ruling)
                    goes_on = False
                continue
            echo = goes_on and _same(calls[-1], ruling)
            if not echo or one.marked:
                calls.append(replace(ruling, echo=echo))
            goes_on = True
        return tuple(calls), (*refusals, *self._faults)


def _same(one: Call, other: Call) -> bool:
    return one.name == other.name and one.arguments == other.arguments


@dataclass(frozen=True, slots=True)
class Names:
    """The names on offer, as formats without markers ask for them."""

    offers: Offers
    whole: bool

    def knows(self, written: str) -> bool:
        return self.offers.knows(written)

    def spells(self, written: str) -> bool:
        return self.offers.spells(written)

    def may_grow(self, written: str) -> bool:
        return self.offers.may_grow(written)

    def begins(self, char: str) -> bool:
        return self.offers.begins(char)
