"""Whether a reply holds thoughts and nothing else, in any spelling of the list (K6)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from runner.callformats.thoughts import ANSWER_TAGS, CLOSERS_ALONE, LAST_ONLY, NOISE, THOUGHTS


def _any(literals: Iterable[str], more: str = "") -> re.Pattern[str]:
    """Finds one of the literals, the longest first, in any case of letters."""
    longest_first = sorted(set(literals), key=lambda literal: (-len(literal), literal))
    return re.compile("|".join([*map(re.escape, longest_first), *filter(None, [more])]), re.IGNORECASE)


_NOTHING: Final = _any((*NOISE, *ANSWER_TAGS, *LAST_ONLY), r"\s+")
_CLOSERS: Final = {marks.opens.lower(): _any([marks.closes]) for marks in THOUGHTS}
_OPENER: Final = _any(_CLOSERS)
_CLOSER_ALONE: Final = _any(CLOSERS_ALONE)


def is_thought_alone(text: str) -> bool:
    """Whether nothing but thoughts stands in a reply: `<think>hm</think>` is one, and so is `<think>hm`.

    A thought that was never closed goes to the end; one whose opener stood in the prompt, from the beginning to its
    closer. Tokens of the turn around it are no answer. Linear. White space alone is no thought.
    """
    at, found = _behind_nothing(text, 0), False
    while (opener := _OPENER.match(text, at)) is not None:
        found = True
        closer = _CLOSERS[opener[0].lower()].search(text, opener.end())
        if closer is None:
            return True
        at = _behind_nothing(text, closer.end())
    if found:
        return at == len(text)
    closer = _CLOSER_ALONE.search(text)
    if closer is None or _OPENER.search(text, 0, closer.start()) is not None:
        return False
    return _behind_nothing(text, closer.end()) == len(text)


def _behind_nothing(text: str, at: int) -> int:
    while (nothing := _NOTHING.match(text, at)) is not None:
        at = nothing.end()
    return at
