"""Two schemas that both hold, told as one (K3).

What cannot be said in one schema is left out: the result then lets more through, and the tool's own schema, which
arguments are checked against, still refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runner.host.events import Json
from runner.tools.offering.values import TYPES, Schema, is_number, types_declared

_STRICTER: Mapping[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
}
_BOTH_HOLD = frozenset({"items", "contains", "propertyNames"})


def merged(first: Schema, second: Schema) -> dict[str, Any] | None:
    """A schema for what both let through; None when no value can have the types of both.

    Words (`description`, `title`) of the first win. Sub-schemas of both become one `allOf` that is read later.
    """
    both: dict[str, Any] = dict(first)
    types = _common_types(first, second)
    if types == ():
        return None
    for keyword, value in second.items():
        both[keyword] = _together(keyword, first[keyword], value) if keyword in first else value
    if types is not None:
        both["type"] = types[0] if len(types) == 1 else list(types)
    if not _closed_for_both(first, second):
        both.pop("additionalProperties", None)
    return both


def _together(keyword: str, first: Any, second: Any) -> Any:
    if keyword == "properties" and isinstance(first, Mapping) and isinstance(second, Mapping):
        shared = {name: _all_of(first[name], second[name]) for name in second if name in first}
        return {**first, **second, **shared}
    if keyword == "required" and isinstance(first, list) and isinstance(second, list):
        return [*first, *(name for name in second if name not in first)]
    if keyword == "enum" and isinstance(first, list) and isinstance(second, list):
        return [value for value in first if value in second]
    if keyword in _STRICTER and is_number(first) and is_number(second):
        return _STRICTER[keyword](first, second)
    return _all_of(first, second) if keyword in _BOTH_HOLD else first


def _all_of(first: Any, second: Any) -> Json:
    return first if first == second else {"allOf": [first, second]}


def _common_types(first: Schema, second: Schema) -> tuple[str, ...] | None:
    one, other = types_declared(first), types_declared(second)
    if one is None or other is None:
        return one or other
    whole = {"integer"} if "number" in one and "integer" in other and "integer" not in one else set()
    return tuple(name for name in TYPES if (name in one and _lets_through(other, name)) or name in whole)


def _lets_through(types: tuple[str, ...], name: str) -> bool:
    return name in types or (name == "integer" and "number" in types)


def _closed_for_both(first: Schema, second: Schema) -> bool:
    """Whether `additionalProperties` of one, which speaks of its own fields only, holds for the fields of both."""
    return all(
        "additionalProperties" not in one or _fields(other) <= _fields(one)
        for one, other in ((first, second), (second, first))
    )


def _fields(schema: Schema) -> set[str]:
    properties = schema.get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()
