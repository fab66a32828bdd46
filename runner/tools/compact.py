"""Short schemas for small models, and the quick check that goes with them (S2)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from runner.conversation.cut import head
from runner.host.events import Json
from runner.tools.offering.values import TYPES, is_of

FIELD_DESCRIPTION_CHARACTERS = 160
_KEPT = ("type", "enum", "minimum", "maximum")
_MAX_DEPTH = 32


def compact_schema(schema: Mapping[str, Json] | None) -> dict[str, Json]:
    """Only type, properties, required, enum, minimum, maximum, items and description (at most 160 characters) (S2)."""
    return _compact(schema, 0) if schema is not None else {}


def _compact(schema: Mapping[str, Json], depth: int) -> dict[str, Json]:
    short: dict[str, Json] = {name: schema[name] for name in (*_KEPT, "required") if name in schema}
    description = schema.get("description")
    if isinstance(description, str):
        short["description"] = head(description, FIELD_DESCRIPTION_CHARACTERS)
    if depth >= _MAX_DEPTH:
        return short
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, Mapping):
        short["properties"] = {
            name: _compact(part, depth + 1) for name, part in properties.items() if isinstance(part, Mapping)
        }
    if isinstance(items, Mapping):
        short["items"] = _compact(items, depth + 1)
    return short


def validate_args(schema: Mapping[str, Json] | None, args: object) -> str | None:
    """The first problem of the arguments, or None: an object, what is required, then type, enum and bounds (S2)."""
    if not isinstance(args, Mapping):
        return "Arguments must be an object."
    if schema is None:
        return None
    required, properties = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and args.get(name, "") == "":
            return f'Missing required argument "{name}".'
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if name in args and isinstance(part, Mapping) and (problem := _field_problem(name, part, args[name])):
            return problem
    return None


def _field_problem(name: str, part: Mapping[str, Json], value: object) -> str | None:
    types = _type_names(part.get("type"))
    if types and not any(_is_of_type(value, wanted) for wanted in types):
        return f'"{name}" must be {" or ".join(types)}, got {_shown(value)}.'
    enum = part.get("enum")
    if isinstance(enum, list) and not any(_same(value, allowed) for allowed in enum):
        return f'"{name}" must be one of {", ".join(_shown(allowed) for allowed in enum)}.'
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _range_problem(name, part, value)


def _range_problem(name: str, part: Mapping[str, Json], value: float) -> str | None:
    minimum, maximum = part.get("minimum"), part.get("maximum")
    if _is_of_type(minimum, "number") and value < minimum:  # type: ignore[operator]  # _is_of_type says it is a number
        return f'"{name}" must be at least {_shown(minimum)}.'
    if _is_of_type(maximum, "number") and value > maximum:  # type: ignore[operator]
        return f'"{name}" must be at most {_shown(maximum)}.'
    return None


def _type_names(declared: Json) -> tuple[str, ...]:
    names = declared if isinstance(declared, list) else [declared]
    return tuple(name for name in names if isinstance(name, str))


def _is_of_type(value: object, name: str) -> bool:
    """A type of the schema's own making says nothing."""
    return name not in TYPES or is_of(value, name)


def _same(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _shown(value: object) -> str:
    if isinstance(value, str):
        value = head(value, FIELD_DESCRIPTION_CHARACTERS)
    try:
        return head(json.dumps(value, ensure_ascii=False), 2 * FIELD_DESCRIPTION_CHARACTERS)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
