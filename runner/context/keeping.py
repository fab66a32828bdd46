"""Identifiers that a model's summary forgot: a few lines bring them back (F3: facts and identifiers to keep). Pure.

A small model writes a fluent summary and leaves out the one code that somebody will ask for. Nobody can know which of
them were meant to go, so the lines say that newer ones may hold; they are few, and the newest win.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from runner.context.digest import EARLIER, line_of, read_entries, sentences_of, without_earlier
from runner.conversation.units import Unit, UserTurn

SHARE: Final = 8
"""The lines may take one part in so many of the summary's limit."""

MOST: Final = 400
"""Tokens of the lines at most, whatever the limit."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+#-]{3,119}")
_SHORTEST, _DIGITS = 4, 4


def with_identifiers(
    summary: str, *, previous: str | None, told: Iterable[Unit], limit: int, price: Callable[[str], int]
) -> str:
    """The summary, which keeps what it says, and before it what it forgot: lines of the summary so far and sentences of
    people that name something it does not name. Within `limit` tokens by `price` altogether.

    `told`: what the summary was made from beside `previous`, oldest first.
    """
    written = without_earlier(summary)
    known = identifiers(written)
    room = min(limit // SHARE, MOST, limit - price(written))
    room -= price(f"{EARLIER}:\n")
    lines: list[str] = []
    for line in _newest_first(previous or "", told):
        missing = {name for name in identifiers(line) - known if name not in written}
        known |= missing
        cost = price(f"- {line}\n") + 1
        if not missing or cost > room:
            continue
        room -= cost
        lines.append(f"- {line}")
    return "\n".join((f"{EARLIER}:", *reversed(lines), written)) if lines else written


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


def _newest_first(previous: str, told: Iterable[Unit]) -> Iterator[str]:
    for unit in reversed(tuple(told)):
        if isinstance(unit, UserTurn):
            yield from (line_of(sentence) for sentence in reversed(sentences_of(unit.text())))
    yield from (line for _, line in reversed(tuple(read_entries(previous))))
