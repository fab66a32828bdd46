"""Schemas as strangers write them, and the part of JSON Schema that every provider takes (K3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

# Schemas as strangers write them, well formed and not, and values that they may let through (K3).

NAMES = st.sampled_from(["a", "b", "kind", "城市", "filter[id]", "", "x" * 70, "$top"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "b", "abc", "天"])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)


def _some(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=parts)


def _with(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**base, **more}


_small = st.integers(0, 3)
_strings = _some(
    minLength=_small,
    maxLength=st.integers(1, 2_000),
    pattern=st.sampled_from(["^a", "b$", "天"]),
    format=st.sampled_from(["date-time", "uri"]),
    enum=st.lists(st.sampled_from(["a", "b", "", "abc"]), min_size=1, max_size=3),
)
_numbers = _some(
    minimum=st.integers(-2, 1),
    maximum=st.integers(0, 3),
    exclusiveMinimum=st.sampled_from([-1, 0, 0.5]),
    multipleOf=st.sampled_from([1, 0.5]),
    enum=st.lists(st.sampled_from([0, 1, 1.0, 0.5, -1]), min_size=1, max_size=3),
)
_simple = (
    st.builds(_with, st.just({"type": "string"}), _strings)
    | st.builds(_with, st.sampled_from([{"type": "integer"}, {"type": "number"}]), _numbers)
    | st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, True, {"type": ["string", "null"]}, {"const": "a"}])
    | st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=4))
    | st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, st.sampled_from(["tree", "word"]))
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of objects, with fields of `inner`."""
    parts = _some(
        properties=st.dictionaries(NAMES, inner | st.just(False), max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.booleans() | inner,
        minProperties=_small,
        dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=1),
        description=st.sampled_from(["", "what it is"]),
        default=JSON,
        title=st.just("T"),
    )
    return st.builds(_with, st.sampled_from([{"type": "object"}, {"type": ["object", "null"]}]), parts)


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    plain = _some(items=inner | st.booleans(), minItems=_small, maxItems=st.integers(0, 300), uniqueItems=st.booleans())
    tuples = st.builds(lambda parts: {"prefixItems": parts, "items": False}, st.lists(inner, min_size=1, max_size=3))
    return st.builds(_with, st.just({"type": "array"}), plain | tuples)


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    keyword = st.sampled_from(["anyOf", "oneOf", "allOf"])
    return st.builds(lambda word, parts: {word: parts}, keyword, several) | st.builds(
        lambda base, word, parts: {**base, word: parts}, objects(inner), keyword, several
    )


SCHEMAS = st.recursive(_simple, lambda inner: objects(inner) | _arrays(inner) | _combined(inner), max_leaves=12)
DEFINITIONS = {
    "word": {"type": "string", "minLength": 1},
    "tree": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    },
}
WELL_FORMED = st.builds(_with, objects(SCHEMAS) | _combined(objects(SCHEMAS)), st.just({"$defs": DEFINITIONS}))
"""What a careful author writes; `properties` never stand without a type, and tuples are closed."""

_KEYWORDS = [
    *("type", "properties", "required", "items", "prefixItems", "additionalProperties", "enum", "const", "anyOf"),
    *("oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs", "definitions", "minimum", "exclusiveMinimum"),
    *("maximum", "exclusiveMaximum", "minLength", "maxLength", "maxItems", "pattern", "format", "default", "title"),
    *("description", "examples", "nullable", "patternProperties", "dependentRequired", "x-own", "$schema", "a"),
]
_values = (
    JSON
    | SCHEMAS
    | st.lists(SCHEMAS, max_size=3)
    | st.dictionaries(NAMES, SCHEMAS, max_size=3)
    | st.sampled_from(["object", "OBJECT", ["object", "null"], "#", "#/$defs/a", "#/properties/a", "http://x/y", 2**70])
)
MALFORMED = st.dictionaries(st.sampled_from(_KEYWORDS), _values, max_size=6)
MALFORMED_DEEP = st.recursive(
    MALFORMED,
    lambda inner: st.builds(
        lambda base, word, part: {**base, word: part},
        MALFORMED,
        st.sampled_from(["properties", "items", "anyOf", "$defs"]),
        inner | st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    ),
    max_leaves=6,
)

ODD_PARTS: list[Any] = [
    # drafts 3 and 4
    *({"type": "any"}, {"type": ["string", {"type": "object"}]}, {"type": "string", "required": True}),
    *({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"extends": {"type": "object"}}),
    *({"disallow": "string"}, {"divisibleBy": 2}, {"type": "array", "items": [{"type": "string"}]}),
    *({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},),
    *({"items": [True, False]}, {"dependencies": {"a": ["b"], "b": {"required": ["c"]}}}),
    # OpenAPI, and generators of their own
    *({"type": "string", "nullable": True}, {"type": "STRING"}, {"type": ["OBJECT", "NULL"]}, {"type": "file"}),
    *({"type": []}, {"type": None}, {"type": ["null"]}, {"properties": {"a": None, "b": [], "c": 3, "d": "string"}}),
    # values of several types
    *({"enum": [True, 1, "a", None, {"a": 1}, [1]]}, {"enum": [0, False]}, {"const": {"a": 1}}, {"const": None}),
    *({"const": [1, "a"]}, {"const": 1.0}, {"enum": [2**63, 1]}, {"type": "string", "enum": ["a", 1, None]}),
    *({"type": "boolean", "enum": [True]}, {"type": "integer", "enum": [1.0, 2]}, {"enum": []}),
    # bounds that cross, and that no integer holds
    *({"type": "integer", "minimum": 0.5}, {"type": "integer", "minimum": 0.2, "maximum": 0.5}, {"minimum": 2**70}),
    *({"type": "string", "minLength": 5, "maxLength": 2}, {"type": "array", "minItems": 3, "maxItems": 1}),
    *({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, {"type": "string", "minLength": -1}),
    *({"type": "string", "minLength": 1.0}, {"type": "array", "minItems": 1_000}, {"minimum": float("nan")}),
    # conditions, negations, patterns
    *({"not": {"type": "string"}}, {"not": {}}, {"not": True}, {"if": True, "then": False}),
    *({"if": {"type": "string"}, "then": {"minLength": 2}, "else": False}, {"contains": {"type": "string"}}),
    *({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False}, {"propertyNames": False}),
    *({"type": "object", "minProperties": 1, "maxProperties": 0}, {"unevaluatedProperties": False}),
    # references that lead nowhere, or round and round
    *({"$ref": "#"}, {"$ref": "#/$defs/tree/properties/b"}, {"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/either"}),
    *({"$ref": "#/$defs/both"}, {"$ref": "#/$defs/word", "minLength": 2}, {"$ref": "#x"}, {"$dynamicRef": "#meta"}),
    # alternatives of every kind
    *({"anyOf": []}, {"allOf": []}, {"anyOf": [True, False]}, {"anyOf": [False]}, {"oneOf": [{"type": "null"}]}),
    *({"allOf": [{"type": ["string", "null"]}, {"type": ["null", "integer"]}]},),
    *({"anyOf": [{"type": "string"}], "oneOf": [{"minLength": 1}], "allOf": [{"maxLength": 3}]},),
    *({"enum": [str(number) for number in range(300)]}, {"enum": ["a" * 9_000]}, {"type": "array", "maxItems": 0}),
]
"""Parts as they come from older drafts, other dialects and by mistake."""
ODD_DEFINITIONS = {
    **DEFINITIONS,
    "loop": {"$ref": "#/$defs/pool"},
    "pool": {"$ref": "#/$defs/loop"},
    "either": {"anyOf": [{"$ref": "#/$defs/either"}, {"type": "string"}]},
    "both": {"allOf": [{"$ref": "#/$defs/both"}]},
}
_odd = _simple | st.sampled_from(ODD_PARTS)


_odd |= st.builds(
    lambda one, other: {**one, **other} if isinstance(one, dict) else other, _odd, st.sampled_from(ODD_PARTS)
)


ODD = st.recursive(_odd, lambda inner: objects(inner) | _arrays(inner) | _combined(inner), max_leaves=8)

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, 1.0, 2**63, "", "a", "b", "abc", "天", "x" * 50, "2020-01-01T00:00:00Z"),
    *([], [1], ["a"], ["a", 1], [None], [1, 1], [["a"]], [{}], {}, {"a": 1}, {"a": "x"}, {"b": 2}, {"z": 1}),
    *({"a": "a", "b": "b"}, {"a": None}, {"a": {"a": 1}}, {"b": [{"a": 1}]}, {"kind": "a"}, {"城市": 1}, {"": 0}),
]
"""Plain values of every kind."""


def is_open(part: Any) -> bool:
    """Whether a schema lets through what its author plainly does not mean: more items than a tuple has, fields that
    only another alternative names, objects where `items` stand without a type."""
    if isinstance(part, list):
        return any(map(is_open, part))
    if not isinstance(part, dict):
        return False
    tuple_like = isinstance(part.get("items"), list) or "prefixItems" in part
    untyped = "type" not in part and bool({"items", "properties", "required"} & part.keys())
    return tuple_like or untyped or "anyOf" in part or "oneOf" in part or any(map(is_open, part.values()))


def as_meant(schema: Any) -> Any:
    """The schema with each alternative closed against fields that only others name: what such a field holds there is
    nobody's wish, though JSON Schema lets anything through."""
    if isinstance(schema, list):
        return [as_meant(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    meant = {word: as_meant(part) for word, part in schema.items()}
    for word in ("anyOf", "oneOf"):
        if word in meant:
            names = [_fields(branch) for branch in meant[word]]
            every = set[str]().union(*names)
            meant[word] = [
                {"allOf": [branch, {"properties": dict.fromkeys(every - own, False)}]}
                for branch, own in zip(meant[word], names, strict=True)
            ]
    return meant


def _fields(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    parts = [part for word in ("allOf", "anyOf", "oneOf") for part in schema.get(word, [])]
    if "$ref" in schema:
        parts.append(DEFINITIONS[schema["$ref"].rpartition("/")[2]])
    return {*schema.get("properties", {}), *schema.get("required", [])}.union(*map(_fields, parts))


@st.composite
def values_for(draw: st.DrawFn, schema: Any, depth: int = 0) -> Any:
    """A value that the schema has some chance to let through."""
    if not isinstance(schema, dict) or depth > 4 or draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    branches = [part for word in ("anyOf", "oneOf", "allOf") for part in schema.get(word, []) if isinstance(part, dict)]
    if branches:
        schema = {**schema, **draw(st.just({}) | st.sampled_from(branches))}
    if "$ref" in schema:
        schema = DEFINITIONS[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        names = {*schema.get("required", []), *draw(st.sets(st.sampled_from([*schema.get("properties", {}), "z"])))}
        return {name: draw(values_for(schema.get("properties", {}).get(name), depth + 1)) for name in sorted(names)}
    if kind == "array":
        parts = schema.get("prefixItems") or [schema.get("items")] * draw(st.integers(0, 3))
        return [draw(values_for(part, depth + 1)) for part in parts]
    return draw(JSON if kind is None else _OF[kind])


_OF: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["a", "b", "abc", "天", ""]),
    "integer": st.integers(-3, 3),
    "number": st.sampled_from([0, 1, 0.5, -1, 1.0]),
    "boolean": st.booleans(),
    "null": st.none(),
}


# The part of JSON Schema that every provider takes, as a strict judge that shares nothing with the code (K3).
#
# Each rule has the refusal it was learned from.

TYPES = {"object", "array", "string", "number", "integer", "boolean"}
WORDS = {"title": str, "description": str}
OF_TYPE: dict[str, dict[str, type | tuple[type, ...]]] = {
    "object": {"properties": dict, "required": list, "additionalProperties": bool},
    "array": {"items": dict, "minItems": int, "maxItems": int},
    "string": {"enum": list, "minLength": int, "maxLength": int, "format": str},
    "number": {"minimum": (int, float), "maximum": (int, float)},
    "integer": {"minimum": (int, float), "maximum": (int, float)},
    "boolean": {},
    "null": {},
}
MOST = {"minLength": 1_000, "maxLength": 1_000, "minItems": 100, "maxItems": 100}
"""llama.cpp: "number of repetitions exceeds sane defaults"."""


def faults(schema: Any) -> list[str]:
    """What some provider would refuse in the parameters of a tool; empty for a good one."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return ["the top is no object (OpenAI: schema must have type 'object')"]
    if not isinstance(schema.get("properties"), dict):
        return ["the top has no properties"]
    return [*_faults(schema, "", 0)]


def _faults(schema: Any, place: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{place}: no schema (Gemini, Kimi: must be an object)"
        return
    if depth > 20:
        yield f"{place}: too deep"
        return
    words = {key for key in schema if key in WORDS or key == "default"}
    yield from (f"{place}.{key}: no text" for key in words - {"default"} if not isinstance(schema[key], str))
    rest = schema.keys() - words
    if not rest:
        return  # anything
    if "anyOf" in rest:
        yield from _any_of(schema, rest, place, depth)
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        yield f"{place}: type {kind!r} (Gemini: Proto field is not repeating; Kimi: type is not defined)"
        return
    yield from _of_type(schema, rest - {"type"}, kind, place)
    for name, part in (schema.get("properties") or {}).items():
        yield from _faults(part, f"{place}.{name}", depth + 1)
    if "items" in schema:
        yield from _faults(schema["items"], f"{place}[]", depth + 1)


def _any_of(schema: dict[str, Any], rest: set[str], place: str, depth: int) -> Iterator[str]:
    if rest != {"anyOf"}:
        yield f"{place}: {rest - {'anyOf'}} beside anyOf (Kimi: type should be defined in anyOf items)"
    branches = schema["anyOf"]
    kinds = [branch.get("type") if isinstance(branch, dict) else None for branch in branches]
    if depth == 0 or len(branches) < 2 or len(set(kinds)) < len(kinds):
        yield f"{place}: alternatives {kinds}"
    for branch, kind in zip(branches, kinds, strict=True):
        if kind != "null":
            yield from _faults(branch, f"{place}|{kind}", depth + 1)


def _of_type(schema: dict[str, Any], rest: set[str], kind: str, place: str) -> Iterator[str]:
    allowed = OF_TYPE[kind]
    yield from (f"{place}: {word} (Gemini: Unknown name)" for word in rest - allowed.keys())
    for word in rest & allowed.keys():
        value: Any = schema[word]
        wanted = allowed[word]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            yield f"{place}.{word}: {value!r}"
        elif word in MOST and isinstance(value, int) and not 0 <= value <= MOST[word]:
            yield f"{place}.{word}: {value} repetitions (llama.cpp)"
    if kind == "array" and "items" not in schema:
        yield f"{place}: no items (Gemini: missing field; OpenAI: array schema missing items)"
    if schema.get("format", "date-time") != "date-time":
        yield f"{place}: format (Gemini: only date-time)"
    yield from (f"{place}: {least} above {most}" for least, most in _PAIRS if _crossed(schema, least, most))
    yield from _enum(schema, place)
    yield from _names(schema, place)


_PAIRS = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


def _crossed(schema: dict[str, Any], least: str, most: str) -> bool:
    return least in schema and most in schema and bool(schema[least] > schema[most])


def _enum(schema: dict[str, Any], place: str) -> Iterator[str]:
    values = schema.get("enum")
    if values is None:
        return
    if not values or any(not isinstance(value, str) or not value for value in values):
        yield f"{place}: enum {values!r} (Gemini: enum of strings only, none empty)"
    elif len(set(values)) < len(values) or len(values) > 250 or len("".join(values)) > 15_000:
        yield f"{place}: enum of {len(values)}"


def _names(schema: dict[str, Any], place: str) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name in fields:
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name, re.ASCII):
            yield f"{place}: field {name!r} (Anthropic: Property keys should match pattern)"
    required = schema.get("required", [])
    if any(not isinstance(name, str) or name not in fields for name in required) or len(set(required)) < len(required):
        yield f"{place}: required {required!r} (Gemini: property is not defined)"
