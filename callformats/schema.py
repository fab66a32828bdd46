"""What a tool's schema says about arguments: whether it accepts them, and which type stands at a place (S1).

Only what decides a reading. A schema that uses more accepts more here; the tool's own validation comes later. Nothing
is ever fetched: a `$ref` is followed inside the schema alone. References may fan out, so every look at a schema has a
bounded number of steps; behind them it says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from callformats.json_value import Json
from callformats.loose_json import State, read_json

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
_DEPTH: Final = 24
_MOST_STEPS: Final = 5_000


def _is(value: Json, type_name: str) -> bool:
    if isinstance(value, bool):
        return type_name == "boolean"
    if type_name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(type_name, (object,)))


class _Look:
    """One look at a schema, within its steps."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._steps = 0

    def resolved(self, part: Json) -> Schema | None:
        """The part itself or what its `$ref` points to; None when it says nothing."""
        for _ in range(_DEPTH):
            self._steps += 1
            if not isinstance(part, dict) or self._steps > _MOST_STEPS:
                return None
            reference = part.get("$ref")
            if not isinstance(reference, str):
                return part
            part = _pointed_at(reference, self._root)
        return None

    def types(self, part: Json, depth: int = 0) -> frozenset[str]:
        """The JSON types a value may have; empty when the schema does not say."""
        known = self.resolved(part)
        if known is None or depth > _DEPTH:
            return frozenset()
        found = _declared(known)
        for branch in _list(known, "allOf"):
            found = _both(found, self.types(branch, depth + 1))
        for keyword in ("anyOf", "oneOf"):
            if branches := [self.types(branch, depth + 1) for branch in _list(known, keyword)]:
                found = _both(found, frozenset().union(*branches) if all(branches) else frozenset())
        return found or (frozenset({"object"}) if "properties" in known else frozenset())

    def accepts(self, part: Json, value: Json, depth: int = 0) -> bool:
        """Whether the value fits: types, required and known properties, enum, const, items, anyOf/oneOf/allOf."""
        known = self.resolved(part)
        if known is None or depth > _DEPTH:
            return True
        allowed = self.types(dict(known))
        if allowed and not any(_is(value, name) for name in allowed):
            return False
        if "const" in known and known["const"] != value:
            return False
        choices = known.get("enum")
        if isinstance(choices, list) and value not in choices:
            return False
        for keyword in ("anyOf", "oneOf"):
            branches = _list(known, keyword)
            if branches and not any(self.accepts(branch, value, depth + 1) for branch in branches):
                return False
        if not all(self.accepts(branch, value, depth + 1) for branch in _list(known, "allOf")):
            return False
        if isinstance(value, dict):
            return self._accepts_members(known, value, depth)
        if isinstance(value, list) and "items" in known:
            return all(self.accepts(known["items"], item, depth + 1) for item in value)
        return True

    def _accepts_members(self, schema: Schema, value: dict[str, Json], depth: int) -> bool:
        if any(isinstance(name, str) and name not in value for name in _list(schema, "required")):
            return False
        properties = properties_of(schema)
        if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
            return False
        known = value.keys() & properties.keys()
        return all(self.accepts(properties[name], value[name], depth + 1) for name in known)

    def decoded(self, part: Json, value: Json, depth: int = 0) -> Json:
        """The value with the objects and lists that it holds as JSON texts where only such are allowed (S1)."""
        known = self.resolved(part)
        if known is None or depth > _DEPTH:
            return value
        if isinstance(value, str):
            value = self._decoded_text(known, value)
        if isinstance(value, dict):
            properties, more = properties_of(known), known.get("additionalProperties")
            return {name: self.decoded(properties.get(name, more), item, depth + 1) for name, item in value.items()}
        if isinstance(value, list):
            return [self.decoded(known.get("items"), item, depth + 1) for item in value]
        return value

    def _decoded_text(self, known: Schema, text: str) -> Json:
        allowed = self.types(dict(known))
        if not allowed or "string" in allowed or not allowed & {"object", "array"}:
            return text
        parsed = read_json(text)
        whole = parsed.state is State.WHOLE and parsed.sure
        return parsed.value if whole and any(_is(parsed.value, name) for name in allowed) else text


def _pointed_at(reference: str, root: Schema) -> Json:
    if not reference.startswith("#"):
        return None
    place: Json = dict(root)
    for step in reference[1:].split("/")[1:]:
        place = place.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
    return place


def _declared(known: Schema) -> frozenset[str]:
    named = known.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    found = {name for name in names if isinstance(name, str) and name in _TYPES}
    if not found and (choices := _list(known, "enum")):
        found = {name for name in _TYPES for choice in choices if _is(choice, name)}
    return frozenset(found)


def _list(schema: Schema, keyword: str) -> list[Json]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else []


def _both(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """What both allow, where each says something."""
    return one & other if one and other else one or other


def types_of(part: Json, root: Schema) -> frozenset[str]:
    """The JSON types a value may have at a part of a schema; empty when that does not say."""
    return _Look(root).types(part)


def accepts(schema: Schema, value: Json) -> bool:
    """Whether arguments fit a tool's schema, as far as that can be told."""
    return _Look(schema).accepts(dict(schema), value)


def decoded(schema: Schema, values: dict[str, Json]) -> dict[str, Json]:
    """Arguments whose JSON texts are objects and lists where the schema allows only such, at any depth; all other
    texts are left alone (S1). The same object where nothing changes.
    """
    made = _Look(schema).decoded(dict(schema), values)
    return made if isinstance(made, dict) and made != values else values


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
    parsed = read_json(text)
    if parsed.state is not State.WHOLE or not parsed.sure or isinstance(parsed.value, str):
        return text
    if allowed:
        return parsed.value if any(_is(parsed.value, name) for name in allowed) else text
    if isinstance(parsed.value, dict | list) or text.strip() in ("true", "false", "null"):
        return parsed.value
    return parsed.value if isinstance(parsed.value, int | float) and not isinstance(parsed.value, bool) else text
