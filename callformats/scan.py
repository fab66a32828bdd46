"""Looking for things in long texts, in steps that are short enough for others to come to their turn (Sm).

A search of the standard library keeps all other threads waiting until it has its answer. Whoever reads a long reply
does so in a thread, and looks through a window at a time.
"""

from __future__ import annotations

import re
from functools import cache

_WINDOW = 32_000
"""Characters that one step of a search goes over: well below a millisecond for a literal, a few for the worst."""

_OVERLAP = 600
"""Characters that windows share: no pattern of this package matches more, values of unbounded length apart."""

_SPACE = re.compile(r"\s*+")
_BLANK_LINES = re.compile(r"(?:[ \t\r]{0,80}+\n)*+")


@cache
def any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the next of the literals; where several begin at one place, the longest."""
    return re.compile(_branches(sorted(set(literals))))


def _branches(literals: list[str]) -> str:
    """The literals as a tree of what they begin with, so that each character of a text is looked at about once."""
    starts: dict[str, list[str]] = {}
    for literal in filter(None, literals):
        starts.setdefault(literal[0], []).append(literal[1:])
    branches = [re.escape(first) + _branches(rest) for first, rest in starts.items()]
    if not branches:
        return ""
    group = branches[0] if len(branches) == 1 and "" not in literals else f"(?:{'|'.join(branches)})"
    return f"{group}?" if "" in literals else group


def next_match(pattern: re.Pattern[str], text: str, at: int, end: int | None = None) -> re.Match[str] | None:
    """`pattern.search(text, at, end)`, a window at a time. The pattern matches at most 600 characters."""
    stop = len(text) if end is None else min(end, len(text))
    while True:
        limit = min(at + _WINDOW, stop)
        match = pattern.search(text, at, limit)
        if limit == stop or (match is not None and match.start() <= limit - _OVERLAP):
            return match
        at = limit - _OVERLAP  # what begins here may go on behind the window


class Finder:
    """`next_match` of one pattern in one text, again and again: nothing is looked through twice."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern = pattern
        self._text = text
        self._from: int | None = None
        self._match: re.Match[str] | None = None

    def next(self, at: int) -> re.Match[str] | None:
        """The first match that begins at `at` or behind it."""
        known = self._from is not None and self._from <= at and (self._match is None or self._match.start() >= at)
        if not known:
            self._from, self._match = at, next_match(self._pattern, self._text, at)
        return self._match


def skip_space(text: str, at: int) -> int:
    """Index of the first character from `at` that is no white space."""
    return skip(_SPACE, text, at)


def skip_blank_lines(text: str, at: int) -> int:
    """Index behind the lines from `at` on in which nothing stands; `at` is where a line begins."""
    return skip(_BLANK_LINES, text, at)


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Index behind what the pattern repeats from `at` on, a window at a time; 600 characters a repetition at most."""
    while True:
        match = pattern.match(text, at, at + _WINDOW)
        if match is None or match.end() < at + _WINDOW - _OVERLAP:
            return match.end() if match else at
        at = match.end()
