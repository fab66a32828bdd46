"""An opener that opens nothing known: it is hidden up to its closer, else the opener alone is."""

from __future__ import annotations

from dataclasses import dataclass

from callformats.block import UNFINISHED, Undecided
from callformats.scan import next_match
from callformats.tokens import closers_of, tokens

ORPHAN_CHARACTERS = 400
"""How far the closer of unreadable markup is looked for."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """Text up to `end` is none for the user, unless it is `shown`. `raw`: markup that makes no sense."""

    end: int
    raw: str | None = None
    shown: bool = False


def orphan(text: str, at: int, token: str, complete: bool) -> Orphan | Undecided:
    """What becomes of the opener at `at` that no format reads."""
    end = at + len(token)
    closers = closers_of(token)
    if token[0] not in "<[]" or token[-1] not in ">]" or closers is None:
        return Orphan(end) if token in tokens().noise else Orphan(at + 1, shown=True)
    limit = end + ORPHAN_CHARACTERS
    close = next_match(closers, text, end, limit)
    if close is None and not complete and len(text) < limit:
        return UNFINISHED
    return Orphan(end) if close is None else Orphan(close.end(), text[at : close.end()])
