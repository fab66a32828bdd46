"""Who speaks after whom in a request, and which result belongs to which call: what rules of several providers ask."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.providers.dialect import Rule
from tests.providers.said import Heard, Turn


def unanswered(heard: Heard) -> list[str]:
    """Ids of calls that have no result right behind their message."""
    return [id for message, results in _rounds(heard) for id in _ids(message) if id not in results]


def orphans(heard: Heard) -> list[str]:
    """Ids of results that stand behind no call of theirs."""
    paired = {id for message, results in _rounds(heard) for id in results if id in _ids(message)}
    return [turn.answers for turn in heard.turns if turn.role == "tool" and turn.answers not in paired]


def doubled_ids(heard: Heard) -> list[str]:
    ids = heard.call_ids
    return sorted({id for id in ids if ids.count(id) > 1})


def neighbours(heard: Heard) -> Iterator[tuple[Turn, Turn]]:
    """Each turn with the one behind it, the system's left out."""
    return itertools.pairwise(turn for turn in heard.turns if turn.role not in ("system", "developer"))


def calls_answered(source: str, words: Callable[[str], str]) -> Rule:
    """Every call has its result right behind its message; `words` of the ids that have none."""

    def broken(heard: Heard) -> str | None:
        missing = unanswered(heard)
        return words(", ".join(missing)) if missing else None

    return Rule("calls_answered_at_once", source, broken)


def results_follow_calls(source: str, words: Callable[[str], str]) -> Rule:
    """Every result stands right behind the message with its call; `words` of the first id that does not."""

    def broken(heard: Heard) -> str | None:
        lone = orphans(heard)
        return words(lone[0]) if lone else None

    return Rule("results_follow_calls", source, broken)


def _rounds(heard: Heard) -> Iterator[tuple[Turn, list[str]]]:
    """Each message with calls, and the ids of the results right behind it."""
    for at, turn in enumerate(heard.turns):
        if turn.calls:
            behind = itertools.takewhile(lambda one: one.role == "tool", heard.turns[at + 1 :])
            yield turn, [one.answers for one in behind]


def _ids(turn: Turn) -> list[str]:
    return [call.id for call in turn.calls]
