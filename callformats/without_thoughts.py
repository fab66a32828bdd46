"""A whole text without the thoughts in it, and whether it holds nothing else (Se, K6).

What a thought looks like is said in `thoughts` alone, for replies that are read piece by piece, for answers of earlier
runs, for summaries and for the question whether there is an answer. A marker in quotes is spoken of, not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from callformats.thinking import QUOTES
from callformats.thoughts import ANSWER_TAGS, CLOSERS_ALONE, HOST, LAST_ONLY, NOISE, SELF, THOUGHTS, Marks


def _any(literals: Iterable[str], more: str = "") -> re.Pattern[str]:
    """Finds one of the literals, the longest first, in any case of letters."""
    longest_first = sorted(set(literals), key=lambda literal: (-len(literal), literal))
    return re.compile("|".join([*map(re.escape, longest_first), *filter(None, [more])]), re.IGNORECASE)


_MOST_PIECES: Final = 200
"""Thoughts, or tokens of the turn in a row, that are looked at: a text with more of them is no model's thinking, and
nobody is to wait for the reading (Sm)."""

_MOST_QUOTED: Final = 2_000
"""Closers in quotes that are passed over in a thought; one with more of them goes to the end of the text (Sm)."""

_TAIL: Final = 2_000
"""Characters at the end of a text among which a last closer is looked for."""

_ALL: Final = (*THOUGHTS, SELF)
_OPENED: Final = {marks.opens.lower(): marks for marks in _ALL}
_CLOSERS: Final = {marks.opens.lower(): _any([marks.closes]) for marks in _ALL}
_BEGINS: Final = _any(_OPENED)
_TOKENS: Final = (*NOISE, *ANSWER_TAGS, *LAST_ONLY)
_NOTHING: Final = _any(_TOKENS, r"\s+")
_NOTHING_LAST: Final = tuple(token.lower() for token in _TOKENS)
_BETWEEN: Final = _any(NOISE, r"\s+")
_SPACE: Final = re.compile(r"\s*")
_CLOSERS_LAST: Final = tuple(closer.lower() for closer in CLOSERS_ALONE)


def without_thoughts(text: str, *, anywhere: bool = False) -> str:
    """A text without its thoughts, white space behind them included. Linear.

    An answer may speak of such tags: in one a thought counts where the text begins, and anywhere only as the Host
    renders them; and a sentence opens one only if another closes it. `anywhere`: in what no person reads (a summary)
    every kind counts wherever it stands, and tokens of the turn go too. One that was never closed goes to the end of
    the text; one that was never opened goes from the beginning. Of a text with hundreds of them only what stands
    behind the last one is left.
    """
    rest = text[_behind_thoughts(text, sentences_may_stay_open=anywhere) :]
    if not anywhere:
        return _without(rest, [HOST], ())
    bare = _without(rest, [marks for marks in _ALL if not marks.leads], NOISE)
    return _without_answer_tags(bare) if len(bare) < len(text) else bare


def is_thought_alone(text: str) -> bool:
    """Whether nothing but thoughts stands in a reply: `<think>hm</think>` is one, and so is `<think>hm`.

    Tokens of the turn around it are no answer. Linear. White space alone is no thought.
    """
    begun = _behind_thoughts(text, sentences_may_stay_open=True)
    if begun:
        return _behind(_NOTHING, text, begun) == len(text)
    # One thought whose opener stood in the prompt: a closer is the last thing said, and nothing opens one.
    if not _ends_in_closer(text):
        return False
    small = text.lower()
    return not any(opener in small for opener in _OPENED)


def _ends_in_closer(text: str) -> bool:
    tail = text[-_TAIL:].lower()
    for _ in range(_MOST_PIECES):
        tail = tail.rstrip()
        token = next((token for token in _NOTHING_LAST if tail.endswith(token)), None)
        if token is None:
            return tail.endswith(_CLOSERS_LAST)
        tail = tail.removesuffix(token)
    return False


def _behind_thoughts(text: str, *, sentences_may_stay_open: bool) -> int:
    """Where the thoughts that a text begins with end; 0 without any."""
    end = 0
    at = _behind(_NOTHING, text, 0)
    for _ in range(_MOST_PIECES):
        opener = _BEGINS.match(text, at)
        if opener is None:
            break
        closer = _unquoted(_CLOSERS[opener[0].lower()], text, opener.end())
        if closer is None:
            leads = _OPENED[opener[0].lower()].leads
            return end if leads and not sentences_may_stay_open else len(text)
        end = _behind(_SPACE, text, closer.end())
        at = _behind(_BETWEEN, text, end)
    return end


def _without(text: str, kinds: list[Marks], noise: tuple[str, ...]) -> str:
    opened = {marks.opens.lower(): marks for marks in kinds}
    alone = {marks.closes.lower() for marks in kinds if marks.closes in CLOSERS_ALONE}
    small = _lower(text)
    literals = [
        literal for literal in (*opened, *(marks.closes for marks in kinds), *noise) if literal.lower() in small
    ]
    if not literals:
        return text
    if sum(small.count(literal.lower()) for literal in literals) > 2 * _MOST_PIECES:
        return text[max(small.rfind(literal.lower()) + len(literal) for literal in literals) :].lstrip()
    tokens = _any(literals)
    kept: list[str] = []
    inside: Marks | None = None
    after = 0
    for token in _all_unquoted(tokens, text):
        word = token[0].lower()
        if inside is None:
            kept.append(text[after : token.start()])
            inside, after = opened.get(word), token.end()
            if inside is None:
                after = _behind(_SPACE, text, token.end())
            if word in alone:
                kept.clear()
        elif word == inside.closes.lower():
            inside, after = None, _behind(_SPACE, text, token.end())
    return "".join(kept) + ("" if inside is not None else text[after:])


def _lower(text: str) -> str:
    """A text in small letters, each where it stood: of all characters only this one becomes two."""
    return text.replace("\u0130", "I").lower()


def _without_answer_tags(text: str) -> str:
    """A text without the tags that wrap an answer behind a thought."""
    bare = text.strip()
    for opens, closes in zip(ANSWER_TAGS[::2], ANSWER_TAGS[1::2], strict=True):
        if bare.lower().startswith(opens):
            return bare[len(opens) :].removesuffix(closes).strip()
    return text


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    for _ in range(_MOST_PIECES):
        found = pattern.match(text, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return at


def _all_unquoted(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    return (found for found in pattern.finditer(text) if not _is_quoted(text, found))


def _unquoted(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    first = islice(pattern.finditer(text, at), _MOST_QUOTED)
    return next((found for found in first if not _is_quoted(text, found)), None)


def _is_quoted(text: str, token: re.Match[str]) -> bool:
    before = text[token.start() - 1 : token.start()]
    return bool(before) and before in QUOTES and text[token.end() : token.end() + 1] == before
