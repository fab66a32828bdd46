"""What rules of several providers look at: the tools of a request, and who speaks after whom in it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.providers.dialect import Rule
from tests.providers.said import Heard, Json, Turn

# The tools of a request: their names and schemas, node by node.

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


@dataclass(frozen=True, slots=True)
class Node:
    """A schema inside a schema. `path`: the keys that lead to it. `value` may be `true`, a list, anything that was
    written where a schema belongs."""

    path: tuple[str, ...]
    value: Any

    @property
    def place(self) -> str:
        return ".".join(self.path) or "root"

    @property
    def schema(self) -> Json:
        """The node as an object, empty where it is none."""
        return self.value if isinstance(self.value, dict) else {}


def nodes(schema: Any, path: tuple[str, ...] = ()) -> Iterator[Node]:
    """The schema itself and every one in it, outermost first."""
    yield Node(path, schema)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            for name, one in value.items():
                yield from nodes(one, (*path, key, name))
        elif key in _LISTS and isinstance(value, list):
            for at, one in enumerate(value):
                yield from nodes(one, (*path, f"{key}[{at}]"))
        elif key in _ONES:
            yield from nodes(value, (*path, key))


def functions(body: Json) -> list[Json]:
    """The functions of a chat completions request."""
    return [one["function"] for one in body.get("tools") or ()]


def parameter_nodes(body: Json) -> Iterator[tuple[str, Node]]:
    """Every schema of every function of a chat completions request, with the function's name."""
    for function in functions(body):
        if function.get("parameters") is not None:
            for node in nodes(function["parameters"]):
                yield str(function["name"]), node


def types_of(schema: Json) -> list[str]:
    """What `type` says, as a list."""
    kind = schema.get("type")
    return [str(one) for one in kind] if isinstance(kind, list) else [str(kind)] if kind is not None else []


# Who speaks after whom in a request, and which result belongs to which call: what rules of several providers ask.


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
