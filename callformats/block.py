"""What a format's reader hands back, and what a format is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from callformats.json_value import Json
from callformats.scan import next_match


@dataclass(frozen=True, slots=True)
class Candidate:
    """What looks like a call in a text, before anybody asked whether such a tool is on offer.

    `arguments` None means that none were written. `typed` False: the values are texts, and the tool's schema says
    what they are (XML formats). `cut`: the text ends inside a string or value. `mended`: something was repaired.
    `exact` False: it was to be JSON and is not to the letter, though clear (a comma too many, Python's words).
    `unsure`: what was repaired leaves more than one reading (Sl). `flat`: the arguments stood beside the name
    instead of in an object of their own. `beside`: fields there that belong to the call (`id`, `type`), unless no
    arguments were written and the tool has parameters of these names. `doubled`: a key that was given twice with
    different values. `glued`: the name and the first key, which is the same text, are written in one.
    """

    name: str
    arguments: Json = None
    raw: str = ""
    id: str | None = None
    typed: bool = True
    mended: bool = False
    exact: bool = True
    unsure: bool = False
    cut: bool = False
    broken: bool = False
    flat: bool = False
    beside: Mapping[str, Json] | None = None
    doubled: str | None = None
    glued: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Call markup that ends at `end` (index into the text). No candidates: markup that holds nothing.

    `final`: the turn is over with it; text behind it was written without the results and is dropped.
    """

    end: int
    candidates: tuple[Candidate, ...] = ()
    final: bool = False


class Undecided(Enum):
    DECLINED = "this is not the format"
    UNFINISHED = "more text may decide"


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Declined, after reading up to `read_to`: what that costs is counted, so that it stays bounded."""

    read_to: int


Outcome = Block | Undecided | GaveUp
DECLINED = Undecided.DECLINED
UNFINISHED = Undecided.UNFINISHED

BlockReader = Callable[[str, int, bool], Outcome]
"""(text, index of the opener, whether the text is complete) → a block, or why there is none (yet).

Never UNFINISHED for a complete text. Takes time linear in what it reads, and declines within a bounded look-ahead.
"""


class Names(Protocol):
    """The names on offer, as a format without markers needs them."""

    def knows(self, written: str) -> bool:
        """Whether a tool is meant."""

    def spells(self, written: str) -> bool:
        """Whether it is a tool's name as written on offer, in any case."""

    def may_grow(self, written: str) -> bool:
        """Whether more characters could make it one that `spells` knows."""

    def begins(self, char: str) -> bool:
        """Whether one that `spells` knows begins with this character."""

    @property
    def whole(self) -> bool:
        """Whether nothing visible stands before: then a call to an unknown tool is a fault, not a text."""


PlainReader = Callable[[str, int, bool, Names], Outcome]
"""(text, index of a line's first character, whether the text is complete, names) → like `BlockReader`.

Declines as soon as the text cannot be a call to a tool on offer: text is held back no longer than that.
"""


def _declines(text: str, at: int, complete: bool) -> Outcome:
    return DECLINED


def _no_writer(name: str, arguments: Mapping[str, Json]) -> str:
    raise ValueError(f"no call can be written in this format: {name}")


@dataclass(frozen=True, slots=True)
class Format:
    """One way to write calls as text.

    `opens`: literals, each of which may begin a block anywhere in a reply; text of strangers cannot hold
    them live. `closes`: literals that end one; a stray one is dropped if it has six characters or more and begins with
    `<`, `[` or `]`, else it is text. `stops`: what a server should stop at when this format is asked for. `inner`:
    literals that stand right behind the tool's name inside a block; a block whose opener is missing is recognised by
    them. `aliases`: other names of the format. `plain`: the reader of a format without markers, tried where a line
    begins with one of the characters `begins`, or as the name of a tool does.
    """

    id: str
    read: BlockReader = _declines
    write: Callable[[str, Mapping[str, Json]], str] = _no_writer
    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    plain: PlainReader | None = None
    begins: str = ""


def could_begin(text: str, at: int, literals: tuple[str, ...]) -> bool:
    """Whether the text ends, from `at`, inside one of the literals (an empty rest counts)."""
    rest = text[at : at + 48]
    return any(len(rest) < len(literal) and literal.startswith(rest) for literal in literals)


def literal_at(text: str, at: int, literals: tuple[str, ...]) -> str | None:
    """The longest of the literals that stands at `at`."""
    found = [literal for literal in literals if text.startswith(literal, at)]
    return max(found, key=len) if found else None


def unreadable(
    text: str, start: int, complete: bool, markers: re.Pattern[str], closes: tuple[str, ...]
) -> tuple[Candidate, int] | None:
    """A call that cannot be read, up to the next of the markers, and where it ends: behind one that closes a call,
    before any other. None when more text is needed."""
    marker = next_match(markers, text, start)
    if marker is None and not complete:
        return None
    stop = marker.start() if marker else len(text)
    end = marker.end() if marker and marker[0] in closes else stop
    return Candidate("", raw=text[start:stop], broken=True), end
