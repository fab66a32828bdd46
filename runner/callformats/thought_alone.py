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
_END: Final = 2_000
_CLOSERS_ALONE: Final = frozenset(closer.lower() for closer in CLOSERS_ALONE)


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
    if not any(closer in text[-_END:].lower() for closer in _CLOSERS_ALONE):
        return False  # nothing but tokens of the turn stands behind the closer, so it is near
    # Plain searches: in a long text they are forty times as quick as a pattern that minds no case (Sm).
    small = _in_small(text)
    start = _first(small, _CLOSERS_ALONE)
    closer = _CLOSER_ALONE.match(text, start)
    if closer is None or _first(small, _CLOSERS) < start:
        return False
    return _behind_nothing(text, closer.end()) == len(text)


def _in_small(text: str) -> str:
    """The text in small letters, each where it was: a few letters become two that way, and stay as they are."""
    small = text.lower()
    return (
        small if len(small) == len(text) else "".join(char if len(char.lower()) > 1 else char.lower() for char in text)
    )


def _first(text: str, literals: Iterable[str]) -> int:
    """Where the first of the literals stands; the end of the text without one."""
    return min((at for literal in literals if (at := text.find(literal)) >= 0), default=len(text))


def _behind_nothing(text: str, at: int) -> int:
    while (nothing := _NOTHING.match(text, at)) is not None:
        at = nothing.end()
    return at
