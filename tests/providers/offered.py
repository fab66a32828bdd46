"""The tools of a request: their names and schemas, node by node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.providers.said import Json

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
