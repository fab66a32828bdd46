"""The part of JSON Schema that every provider takes, as a strict judge that shares nothing with the code (K3).

Each rule has the refusal it was learned from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

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
