"""What the stream reader notes down on its way: candidates, and the names it may meet."""

from __future__ import annotations

from dataclasses import dataclass

from runner.callformats.block import Candidate
from runner.callformats.offers import Offers


@dataclass(slots=True)
class Found:
    """A candidate and how it stood in the reply."""

    candidate: Candidate
    format_id: str
    marked: bool


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
