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


_TOKENS: Final = (*NOISE, *ANSWER_TAGS, *LAST_ONLY)
_NOTHING: Final = _any(_TOKENS, r"\s+")
_NOTHING_LAST: Final = tuple(token.lower() for token in _TOKENS)
_CLOSERS: Final = {marks.opens.lower(): _any([marks.closes]) for marks in THOUGHTS}
_OPENER: Final = _any(_CLOSERS)
_CLOSERS_LAST: Final = tuple(closer.lower() for closer in CLOSERS_ALONE)
_TAIL: Final = 2_000
"""Characters at the end of a reply among which a last closer is looked for."""

_MOST_PIECES: Final = 200


def is_thought_alone(text: str) -> bool:
    """Whether nothing but thoughts stands in a reply: `<think>hm</think>` is one, and so is `<think>hm`.

    A thought that was never closed goes to the end; one whose opener stood in the prompt, from the beginning to its
    closer. Tokens of the turn around it are no answer. White space alone is no thought. Of a reply in hundreds of
    pieces it says no: that is no model's thinking, and nobody is to wait for the reading.
    """
    at = _behind_nothing(text, 0)
    for number in range(_MOST_PIECES):
        opener = _OPENER.match(text, at)
        if opener is None:
            return at == len(text) if number else _began_in_the_prompt(text)
        closer = _CLOSERS[opener[0].lower()].search(text, opener.end())
        if closer is None:
            return True
        at = _behind_nothing(text, closer.end())
    return False


def _began_in_the_prompt(text: str) -> bool:
    """Whether it is one thought without its opener."""
    if not _ends_in_closer(text):
        return False
    lowered = text.lower()
    return not any(opener in lowered for opener in _CLOSERS)


def _ends_in_closer(text: str) -> bool:
    """Whether a closer is the last thing said. Looks at the end alone: most replies are long and have none."""
    tail = text[-_TAIL:].lower()
    for _ in range(_MOST_PIECES):
        tail = tail.rstrip()
        token = next((token for token in _NOTHING_LAST if tail.endswith(token)), None)
        if token is None:
            return tail.endswith(_CLOSERS_LAST)
        tail = tail.removesuffix(token)
    return False


def _behind_nothing(text: str, at: int) -> int:
    for _ in range(_MOST_PIECES):
        nothing = _NOTHING.match(text, at)
        if nothing is None:
            break
        at = nothing.end()
    return at
