"""The summary that needs no model: newest facts and identifiers win, within a limit (F5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from runner.context.clipping import clip
from runner.context.facts import says_nothing, states_fact
from runner.context.transcript import harmless, without_data
from runner.conversation.units import AssistantTurn, Unit, UserTurn

GOAL: Final = "Goal"
CONSTRAINTS: Final = "Constraints"
DONE: Final = "Done"
OPEN: Final = "Open"
DECISIONS: Final = "Decisions"
FACTS: Final = "Facts and identifiers"
SECTIONS: Final = (GOAL, CONSTRAINTS, DONE, OPEN, DECISIONS, FACTS)
EARLIER: Final = "Said earlier, may have changed since"
"""Not asked of a model: what its summary forgot (`keeping`)."""

_WRITTEN: Final = (EARLIER, *SECTIONS)
"""The headings of a summary, in their order."""

LINE: Final = 240
"""Characters of one line at most."""

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_IDENTIFIER = re.compile(
    r"https?://|[\w.+-]@[\w-]{1,255}\.\w|(?:^|[\s\"'(=:])[~.]{0,2}/[\w.-]|[A-Za-z]:\\|\w\.[A-Za-z]{1,5}\b|\d\d|[A-Za-z][-_]?\d"
    r"|\w_\w|[a-z][A-Z]|(?<=\w )[A-Z]\w|[\"'`「『“‘][^\"'`」』”’]{2,200}[\"'`」』”’]"
)
"""Whether a sentence names something: every repetition is bounded, so that looking takes linear work."""
_RULE = re.compile(
    r"\b(?:must|never|always|only|don't|do not|please use|instead of|prefer)\b|必须|不要|只能|务必|禁止|必ず|しないで",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^\W*(" + "|".join(_WRITTEN) + r")\W*$", re.IGNORECASE)

NEW_PART: Final = 2 / 3
"""Share of a digest's limit that what is new may take before anything of the summary so far."""

Entry = tuple[str, str]
"""Section and line."""


def digest(units: tuple[Unit, ...], *, previous: str | None, limit: int, price: Callable[[str], int]) -> str:
    """A summary of at most `limit` tokens by `price`. `units` oldest first, all newer than `previous`.

    The limit is filled from the newest line backwards: the goal, up to a half for what people told of themselves (L4),
    up to a half for rules and facts of the new part, two thirds for the new part altogether, then the summary so far,
    whose rules, decisions and facts with identifiers go first, then whatever else is left.
    """
    old = list(read_entries(previous or ""))
    filling = _Filling(limit, price)
    filling.add(_goal(units, old), limit // 3)
    newest = list(_newest_first(units))
    told = (entry for entry in (*newest, *reversed(old)) if entry[0] in (FACTS, EARLIER) and states_fact(entry[1]))
    filling.add(told, limit // 2)
    filling.add((entry for entry in newest if entry[0] != DONE), limit // 2)
    filling.add(newest, int(limit * NEW_PART))
    firm = [entry for entry in reversed(old) if entry[0] in (FACTS, CONSTRAINTS, DECISIONS)]
    firm += [entry for entry in reversed(old) if entry[0] == EARLIER]
    filling.add((entry for entry in firm if entry[0] not in (FACTS, EARLIER) or _IDENTIFIER.search(entry[1])), limit)
    filling.add((*firm, *reversed(old)), limit)
    filling.add(newest, limit)
    return filling.text()


def condense(summary: str, limit: int, price: Callable[[str], int]) -> str:
    """A summary that came out too long, cut to whole lines within `limit` tokens: facts before the rest."""
    return summary if price(summary) <= limit else digest((), previous=summary, limit=limit, price=price)


def read_entries(summary: str) -> Iterator[Entry]:
    """The lines of a summary under our headings; lines under none count as facts."""
    section = FACTS
    for line in summary.splitlines():
        heading = _HEADING.match(line)
        if heading:
            section = next(name for name in _WRITTEN if name.lower() == heading.group(1).lower())
        elif line.strip(" -*•\t"):
            yield section, line_of(line.strip(" -*•\t"))


def without_earlier(summary: str) -> str:
    """A summary without the section that no model is asked for."""
    kept, ours = [], False
    for line in summary.splitlines():
        heading = _HEADING.match(line)
        ours = heading.group(1).lower() == EARLIER.lower() if heading else ours
        if not ours:
            kept.append(line)
    return "\n".join(kept)


class _Filling:
    """Lines taken so far, each at most once; they come newest first and are written oldest first."""

    def __init__(self, limit: int, price: Callable[[str], int]) -> None:
        self._limit, self._price = limit, price
        self._used = 0
        self._lines: dict[str, list[str]] = {section: [] for section in _WRITTEN}
        self._seen: set[str] = set()

    def add(self, entries: Iterable[Entry], until: int) -> None:
        """Take entries while the total stays within `until` tokens; stops after some that do not fit."""
        misses = 0
        for section, line in entries:
            if line in self._seen:
                continue
            heading = 0 if self._lines[section] else self._price(f"{section}:\n") + 1
            cost = self._price(f"- {line}\n") + 1 + heading
            if self._used + cost > min(until, self._limit):
                misses += 1
                if misses > 8:
                    return
                continue
            self._used += cost
            self._seen.add(line)
            self._lines[section].append(line)

    def text(self) -> str:
        blocks = (
            f"{section}:\n" + "\n".join(f"- {line}" for line in reversed(lines))
            for section, lines in self._lines.items()
            if lines
        )
        return "\n".join(blocks)


def line_of(text: str) -> str:
    """One line of a summary: harmless, without data, of a bounded length."""
    return clip(" ".join(harmless(without_data(text)).split()), LINE).replace("\n", " ")


def _goal(units: tuple[Unit, ...], old: list[Entry]) -> Iterator[Entry]:
    newest = next((unit for unit in reversed(units) if isinstance(unit, UserTurn) and unit.text().strip()), None)
    if newest is not None:
        yield GOAL, line_of(newest.text())
    else:
        yield from (entry for entry in reversed(old) if entry[0] == GOAL)


def _newest_first(units: tuple[Unit, ...]) -> Iterator[Entry]:
    for unit in reversed(units):
        yield from _user_lines(unit) if isinstance(unit, UserTurn) else _assistant_lines(unit)


def _user_lines(turn: UserTurn) -> Iterator[Entry]:
    for sentence in reversed(sentences_of(turn.text())):
        if says_nothing(sentence):
            continue
        if _RULE.search(sentence):
            yield CONSTRAINTS, line_of(sentence)
        elif _IDENTIFIER.search(sentence) or states_fact(sentence):
            yield FACTS, line_of(sentence)
        else:
            yield DONE, line_of(f"asked: {sentence}")


def _assistant_lines(turn: AssistantTurn) -> Iterator[Entry]:
    said = sentences_of(turn.text)
    yield from ((FACTS, line_of(sentence)) for sentence in reversed(said) if _IDENTIFIER.search(sentence))
    for call, result in zip(reversed(turn.calls), reversed(turn.results), strict=True):
        yield DONE, line_of(f"{call.name} {clip(call.arguments, 100)}: {clip(result.text, 120)}")
        found = [sentence for sentence in sentences_of(result.text) if _IDENTIFIER.search(sentence)]
        yield from ((FACTS, line_of(sentence)) for sentence in reversed(found[:3] + found[-3:]))
    if said and not says_nothing(said[0]):
        yield DONE, line_of(said[0])


def sentences_of(text: str) -> list[str]:
    """What a text says, one thing each, in its order."""
    # A very long text speaks for itself at its ends; reading all of it for a summary without a model is wasted.
    return [sentence for sentence in _SENTENCE.split(clip(without_data(text), 6_000)) if len(sentence.strip()) > 1]
