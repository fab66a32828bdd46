"""Which JSON types a schema lets through at a place, as far as that can be told (S1)."""

from __future__ import annotations

from collections.abc import Mapping

from runner.host.events import Json

_MAX_HOPS = 16
_MAX_STEPS = 200
_NAMES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})


def types_of(part: Json, root: Mapping[str, Json]) -> frozenset[str] | None:
    """The types a value may have there; None where the schema does not say, so anything may stand there."""
    return _Reader(root).types(part, _MAX_HOPS)


_DECLARE_FIELDS = frozenset(
    {"patternProperties", "dependentSchemas", "dependencies", "propertyNames", "minProperties", "required"}
    | {"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "enum", "const"}
)


def takes_no_fields(schema: Mapping[str, Json]) -> bool:
    """Whether a tool's schema declares no field at all, so that whatever a model adds means nothing to the tool (K5).

    One that takes fields of any name says so by `additionalProperties`, be it `true` or a schema.
    """
    if any(schema.get(keyword) for keyword in ("properties", *_DECLARE_FIELDS)):
        return False
    return not any(
        schema.get(keyword, False) is not False for keyword in ("additionalProperties", "unevaluatedProperties")
    )


class _Reader:
    """Reads one place of a schema within a bounded number of steps, since references may fan out."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._steps = 0

    def types(self, part: Json, hops: int) -> frozenset[str] | None:
        self._steps += 1
        part = _resolved(part, self._root)
        if not isinstance(part, dict) or hops <= 0 or self._steps > _MAX_STEPS:
            return None
        found = _declared(part)
        for keyword in ("anyOf", "oneOf"):
            branches = part.get(keyword)
            if isinstance(branches, list) and branches:
                found = _both(found, _union([self.types(branch, hops - 1) for branch in branches]))
        everything = part.get("allOf")
        for branch in everything if isinstance(everything, list) else ():
            found = _both(found, self.types(branch, hops - 1))
        return found


def _declared(part: dict[str, Json]) -> frozenset[str] | None:
    declared = part.get("type")
    names = declared if isinstance(declared, list) else [declared]
    known = frozenset(name for name in names if isinstance(name, str) and name in _NAMES)
    return known or None


def _union(branches: list[frozenset[str] | None]) -> frozenset[str] | None:
    union: frozenset[str] = frozenset()
    for branch in branches:
        if branch is None:
            return None
        union |= branch
    return union


def _both(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def property_schema(part: Json, name: str | None, root: Mapping[str, Json]) -> Json:
    """The schema of a field of an object, or with None of an array's items; None where there is none."""
    part = _resolved(part, root)
    if not isinstance(part, dict):
        return None
    if name is None:
        return part.get("items")
    properties = part.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name]
    return part.get("additionalProperties")


def _resolved(part: Json, root: Mapping[str, Json]) -> Json:
    """Follows `$ref` inside the schema; a reference that leads nowhere says nothing."""
    for _ in range(_MAX_HOPS):
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return part
        part = _pointed_at(reference, root)
    return None


def _pointed_at(reference: str, root: Mapping[str, Json]) -> Json:
    if not reference.startswith("#"):
        return None
    place: Json = dict(root)
    for step in reference[1:].split("/")[1:]:
        if not isinstance(place, dict):
            return None
        place = place.get(step.replace("~1", "/").replace("~0", "~"))
    return place
