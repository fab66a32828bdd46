"""Calls that an earlier run finished without an answer: the next run goes on from them (S3). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from runner.conversation import failures
from runner.conversation.units import AssistantTurn, Unit
from runner.guards import unframe
from runner.small.answers import Done
from runner.tools.catalogue import Catalogue


def unanswered(units: Sequence[Unit]) -> tuple[AssistantTurn, ...]:
    """The turns with calls that a history ends on, oldest first; none where it ends on words."""
    turns: list[AssistantTurn] = []
    for unit in reversed(units):
        if not isinstance(unit, AssistantTurn) or not unit.calls:
            break
        turns.append(unit)
    return tuple(reversed(turns))


def calls_of(turns: Sequence[AssistantTurn], catalogue: Catalogue) -> Iterator[Done]:
    """Their calls as the run that made them knew them, as far as the history holds them."""
    for turn in turns:
        for call, result in zip(turn.calls, turn.results, strict=True):
            entry = catalogue.get(call.name)
            code, told = failures.split(result.text)
            yield Done(call.name, call.arguments, unframe(told), code, entry is not None and entry.read_only)
