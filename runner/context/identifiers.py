"""What a model's summary forgot: a few lines bring back identifiers, and beside a short one what people said (F3, L3).

A small model writes a fluent summary and leaves out the one code that somebody will ask for, or writes one line for an
hour's talk. Nobody can know what of it was meant to go, so the lines say that newer ones may hold; they are few, and
the newest win. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from runner.context.digest import EARLIER, GOAL, digest, line_of, read_entries, sentences_of, without_earlier
from runner.conversation.units import Unit, UserTurn

SHARE: Final = 8
"""The lines may take one part in so many of the summary's limit."""

MOST: Final = 400
"""Tokens of the lines at most, whatever the limit."""

SHORT, SHORT_SHARE = 150, 20
"""A summary is short below so many tokens, and below one in so many of what it replaces."""

_SAID_SHARE, _SAID_MOST = 4, 800
"""What people said may take one part in so many of the limit, and so many tokens at most."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+#-]{3,119}")
_SHORTEST, _DIGITS = 4, 4


def with_identifiers(
    summary: str,
    *,
    previous: str | None,
    told: Sequence[Unit],
    limit: int,
    price: Callable[[str], int],
    short: bool = False,
) -> str:
    """The summary, which keeps what it says, and before it what it forgot: lines of the summary so far and sentences of
    people that name something it does not name. Within `limit` tokens by `price` altogether.

    `told`: what the summary was made from beside `previous`, oldest first. `short`: it is short for that, so what
    people said stands there too, as the digest would have it (L3).
    """
    written = without_earlier(summary)
    said = _said(previous or "", told, min(limit // _SAID_SHARE, _SAID_MOST), price) if short else ()
    kept = "\n".join((*said, written))
    known = identifiers(kept)
    room = min(limit // SHARE, MOST, limit - price(kept))
    room -= price(f"{EARLIER}:\n")
    lines: list[str] = []
    for line in _newest_first(previous or "", told):
        missing = {name for name in identifiers(line) - known if name not in kept}
        known |= missing
        cost = price(f"- {line}\n") + 1
        if not missing or cost > room:
            continue
        room -= cost
        lines.append(f"- {line}")
    return "\n".join((f"{EARLIER}:", *reversed(lines), kept)) if lines or said else written


def is_short(summary: str, replaced: int, price: Callable[[str], int]) -> bool:
    """Whether a summary is short for the `replaced` tokens that it stands for."""
    return price(summary) < min(SHORT, replaced // SHORT_SHARE)


def _said(previous: str, told: Sequence[Unit], limit: int, price: Callable[[str], int]) -> tuple[str, ...]:
    """The user lines of a digest: what people told of themselves, then the newest; behind them those kept earlier."""
    earlier = "\n".join((f"{EARLIER}:", *(f"- {line}" for name, line in read_entries(previous) if name == EARLIER)))
    people = tuple(unit for unit in told if isinstance(unit, UserTurn))
    written = digest(people, previous=earlier, limit=limit - price(f"{EARLIER}:\n"), price=price)
    return tuple(f"- {line}" for name, line in read_entries(written) if name != GOAL)


def identifiers(text: str) -> set[str]:
    """Words that cannot be guessed: addresses, paths, codes of letters and digits, numbers of four digits and more."""
    return {word for found in _WORD.findall(text) if _names(word := found.rstrip(".:/@+#-_"))}


def _names(word: str) -> bool:
    if len(word) < _SHORTEST:
        return False
    digits = sum(character.isdigit() for character in word)
    if digits >= _DIGITS or "://" in word or "@" in word[1:-1]:
        return True
    return digits > 0 and any(character.isalpha() for character in word)


def _newest_first(previous: str, told: Sequence[Unit]) -> Iterator[str]:
    for unit in reversed(told):
        if isinstance(unit, UserTurn):
            yield from (line_of(sentence) for sentence in reversed(sentences_of(unit.text())))
    yield from (line for _, line in reversed(tuple(read_entries(previous))))
