"""What a tool's schema says about arguments: whether it accepts them, and which type a written text has.

Only what decides S1. A schema that uses more accepts more here; the tool's own validation comes later. Nothing is
ever fetched: a `$ref` is followed inside the schema alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from callformats.json_value import Json
from callformats.loose_json import State, loads

Schema = Mapping[str, Json]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_DEPTH = 24


def _is(value: Json, type_name: str) -> bool:
    if isinstance(value, bool):
        return type_name == "boolean"
    if type_name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(type_name, (object,)))


def _resolved(schema: Json, root: Schema) -> Schema | None:
    """The schema itself or what its `$ref` points to; None when it says nothing."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict):
            return None
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        if not ref.startswith("#/"):
            return None
        target: Json = dict(root)
        for step in ref[2:].split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        schema = target
    return None


def _branches(schema: Schema) -> list[Json]:
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            return branches
    return []


def types_of(schema: Json, root: Schema, depth: int = 0) -> frozenset[str]:
    """The JSON types a value may have; empty when the schema does not say."""
    known = _resolved(schema, root)
    if known is None or depth > _DEPTH:
        return frozenset()
    named = known.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    found = {name for name in names if isinstance(name, str) and name in _TYPES}
    if not found and isinstance(choices := known.get("enum"), list):
        found = {name for name in _TYPES for choice in choices if _is(choice, name)}
    for branch in _branches(known) if not found else []:
        found |= types_of(branch, root, depth + 1)
    if not found and "properties" in known:
        found = {"object"}
    return frozenset(found)


def accepts(schema: Json, value: Json, root: Schema, depth: int = 0) -> bool:
    """Whether the value fits: types, required and known properties, enum, const, items, anyOf/oneOf/allOf."""
    known = _resolved(schema, root)
    if known is None or depth > _DEPTH:
        return True
    allowed = types_of(dict(known), root)
    if allowed and not any(_is(value, name) for name in allowed):
        return False
    if "const" in known and known["const"] != value:
        return False
    choices = known.get("enum")
    if isinstance(choices, list) and value not in choices:
        return False
    branches = _branches(known)
    if branches and not any(accepts(branch, value, root, depth + 1) for branch in branches):
        return False
    every = known.get("allOf")
    if isinstance(every, list) and not all(accepts(branch, value, root, depth + 1) for branch in every):
        return False
    if isinstance(value, dict):
        return _accepts_members(known, value, root, depth)
    if isinstance(value, list) and "items" in known:
        return all(accepts(known["items"], item, root, depth + 1) for item in value)
    return True


def _accepts_members(schema: Schema, value: dict[str, Json], root: Schema, depth: int) -> bool:
    required = schema.get("required")
    if isinstance(required, list) and any(isinstance(name, str) and name not in value for name in required):
        return False
    properties = properties_of(schema)
    if schema.get("additionalProperties") is False and any(name not in properties for name in value):
        return False
    return all(accepts(properties[name], item, root, depth + 1) for name, item in value.items() if name in properties)


def properties_of(schema: Schema) -> dict[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def from_text(text: str, schema: Json, root: Schema) -> Json:
    """The value a written text stands for: what the schema allows, text when it allows text only.

    Without a schema, a text that is a JSON number, true, false, null, an object or a list is that value.
    """
    allowed = types_of(schema, root)
    if allowed == {"string"} or not text.strip():
        return text
    parsed = loads(text)
    if parsed.state is not State.WHOLE or parsed.doubled is not None or isinstance(parsed.value, str):
        return text
    if allowed:
        return parsed.value if any(_is(parsed.value, name) for name in allowed) else text
    if isinstance(parsed.value, dict | list) or text.strip() in ("true", "false", "null"):
        return parsed.value
    return parsed.value if isinstance(parsed.value, int | float) and not isinstance(parsed.value, bool) else text


def decoded(value: Json, schema: Json, root: Schema) -> Json:
    """A JSON string where only an object or array is allowed becomes that; everything else is left alone (S1)."""
    allowed = types_of(schema, root)
    if not isinstance(value, str) or not allowed or "string" in allowed or not allowed & {"object", "array"}:
        return value
    parsed = loads(value)
    whole = parsed.state is State.WHOLE and parsed.doubled is None
    fits = whole and any(_is(parsed.value, name) for name in allowed)
    return parsed.value if fits else value
