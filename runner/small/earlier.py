"""Calls that an earlier run finished without an answer: the next run goes on from them (S3). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from runner.conversation.units import AssistantTurn, Unit
from runner.guards import unframe
from runner.small.answers import Done
from runner.tools.catalogue import Catalogue

_FAILED = re.compile(r"Error \[([a-z_]{1,32})\]: ")


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
            code = _FAILED.match(result.text)
            body = unframe(result.text[code.end() :] if code else result.text)
            yield Done(
                call.name, call.arguments, body, code[1] if code else None, entry is not None and entry.read_only
            )
