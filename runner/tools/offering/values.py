"""What a schema says of values: of which types they are, which ones there are, and their bounds (K3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.host.events import Json

Schema = Mapping[str, Any]

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_MAX_ENUM = 250
_MAX_ENUM_CHARACTERS = 8_000
_LARGEST = 2**63 - 1
"""llama.cpp reads a bound as an integer of 64 bits."""


def types_declared(schema: Schema) -> tuple[str, ...] | None:
    """The JSON types a schema names, in any case of letters; None where it names none that there is."""
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    known = dict.fromkeys(name.lower() for name in names if isinstance(name, str) and name.lower() in TYPES)
    return tuple(known) or None


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def values_of(node: Schema) -> list[Any] | None:
    """The only values there are, each once; None where the schema does not name them."""
    if "const" in node:
        return [node["const"]]
    listed = node.get("enum")
    if not isinstance(listed, list):
        return None
    return [*{json.dumps(value, sort_keys=True): value for value in listed}.values()]


def types_of(node: Schema, values: list[Any] | None) -> tuple[str, ...] | None:
    """The types of a schema that names none, from what it says of them; None where it says nothing."""
    if values is not None:
        return tuple(dict.fromkeys(map(_type_of, values)))
    if isinstance(node.get("properties"), Mapping) or isinstance(node.get("required"), list):
        return ("object",)
    return ("array",) if "items" in node or "prefixItems" in node else None


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


def is_of(value: Any, name: str) -> bool:
    own = _type_of(value)
    if name == "integer":
        return own == "integer" or (own == "number" and value.is_integer())
    return own == name or (own == "integer" and name == "number")


def strings(values: list[Any] | None) -> dict[str, Json]:
    """An enum that every provider takes: of strings, none of them empty (Gemini), not too many."""
    if values is None or "" in values or len(values) > _MAX_ENUM:
        return {}
    return {"enum": values} if sum(map(len, values)) <= _MAX_ENUM_CHARACTERS else {}


_SIDES = (("minimum", "exclusiveMinimum", 1, max), ("maximum", "exclusiveMaximum", -1, min))


def bounds(node: Schema, name: str, values: list[Any] | None) -> dict[str, Json]:
    """`minimum` and `maximum`, exclusive ones among them; an enum of numbers becomes its smallest and largest."""
    found: dict[str, Any] = {}
    for bound, exclusive, step, choose in _SIDES:
        limits: list[Any] = [node.get(bound)]
        beyond = _beyond(node, bound, exclusive)
        if beyond is not None:
            limits.append(int(beyond) + step if name == "integer" and float(beyond).is_integer() else beyond)
        if values:
            limits.append(min(values) if bound == "minimum" else max(values))
        known = [limit for limit in limits if _is_bound(limit)]
        if known:
            found[bound] = choose(known)
    return found if found.get("minimum", -_LARGEST) <= found.get("maximum", _LARGEST) else {}


def _beyond(node: Schema, bound: str, exclusive: str) -> int | float | None:
    """A bound that is itself not met. In draft 4 `exclusiveMinimum: true` says so of `minimum`."""
    limit = node.get(bound) if node.get(exclusive) is True else node.get(exclusive)
    return limit if _is_bound(limit) else None


def without_said_bounds(node: Schema, made: Schema) -> Schema:
    """The schema without the exclusive bounds that the integers of `made` need no word for."""
    rest = dict(node)
    for bound, exclusive, step, _ in _SIDES:
        beyond = _beyond(node, bound, exclusive)
        rest.pop(exclusive, None)
        if beyond is not None and made.get(bound) != beyond + step:
            rest[exclusive] = beyond
    return rest


def _is_bound(value: Any) -> bool:
    return is_number(value) and -_LARGEST <= value <= _LARGEST


def lengths(node: Schema, least: str, most: str, limit: int) -> dict[str, Json]:
    """Lengths up to a limit; longer ones stand in words."""
    given: dict[str, Any] = {word: node.get(word) for word in (least, most)}
    found = {
        word: int(value)
        for word, value in given.items()
        if is_number(value) and 0 <= value <= limit and float(value).is_integer()
    }
    return dict(found) if found.get(least, 0) <= found.get(most, limit) else {}
