"""Every literal that means something in a reply, in one table, and what may still become one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from callformats.block import Format
from callformats.inert import INERT
from callformats.registry import all_closers, by_opener
from callformats.scan import any_of
from callformats.thoughts import (
    ANSWER_TAGS,
    CLOSERS_ALONE,
    LAST_ONLY,
    NOISE,
    RESULT_TOKENS,
    RESULTS,
    THOUGHTS,
    Marks,
)

_SHORTEST_STRAY_CLOSER = 6


@dataclass(frozen=True, slots=True)
class Tokens:
    """`pattern` finds the literals and line ends; the rest says what a literal is. Built once."""

    pattern: re.Pattern[str]
    thoughts: dict[str, Marks]
    thought_closers: frozenset[str]
    results: dict[str, Marks]
    openers: dict[str, tuple[Format, ...]]
    noise: frozenset[str]
    prefixes: frozenset[str]
    longest: int

    def held(self, text: str, at: int, also: str = "") -> int:
        """How many characters at the end of the text may be the beginning of a literal, or of `also`."""
        for length in range(min(self.longest, len(text) - at), 0, -1):
            rest = text[len(text) - length :]
            if rest in self.prefixes or (len(rest) < len(also) and also.startswith(rest)):
                return length
        return 0

    def inert(self, text: str) -> str:
        """The text with each literal changed by one character, so that it means nothing."""
        return self.pattern.sub(lambda match: INERT.get(match[0][0], match[0][0]) + match[0][1:], text)

    def may_grow(self, text: str, at: int) -> bool:
        """Whether what stands from `at` to the end of the text is the beginning of a literal."""
        return len(text) - at <= self.longest and text[at:] in self.prefixes


@cache
def tokens() -> Tokens:
    """The table over all registered formats."""
    thoughts = {marks.opens: marks for marks in THOUGHTS if not marks.leads}
    results = {marks.opens: marks for marks in RESULTS}
    closers = {closer for closer in all_closers() if closer[0] in "<[]" and len(closer) >= _SHORTEST_STRAY_CLOSER} | {
        marks.closes for marks in RESULTS
    }
    noise = frozenset(closers) | frozenset(NOISE)
    literals = {*thoughts, *CLOSERS_ALONE, *results, *RESULT_TOKENS, *noise, *ANSWER_TAGS, *LAST_ONLY, *by_opener()}
    return Tokens(
        pattern=any_of((*literals, "\n")),
        thoughts=thoughts,
        thought_closers=frozenset(CLOSERS_ALONE),
        results=results,
        openers=by_opener(),
        noise=noise,
        prefixes=frozenset(literal[:end] for literal in literals for end in range(1, len(literal))),
        longest=max(map(len, literals)),
    )


@cache
def closer_pattern() -> re.Pattern[str]:
    """Any literal after which a block may be complete."""
    return any_of(tuple(all_closers()))


@cache
def closers_of(opener: str) -> re.Pattern[str] | None:
    """What ends a block that begins with this literal, in any format."""
    closers = tuple(closer for one in by_opener().get(opener, ()) for closer in one.closes if len(closer) > 3)
    return any_of(closers) if closers else None
