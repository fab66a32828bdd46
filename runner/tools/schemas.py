"""Checking arguments against a tool's JSON Schema, without fetching anything and without end (D3, I3).

Tool schemas come from strangers. They are read with an empty registry, so a remote `$ref` makes no request; patterns
run under a time limit; `patternProperties` is not evaluated; depth, size and steps are bounded. A schema that cannot
be evaluated blocks nothing: the verdict says `validated=False`, and why.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import referencing
import regex
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for

from runner.conversation.cut import clip, sendable
from runner.host.events import Json
from runner.tools.offering.values import is_number

_MAX_DEPTH = 48
_MAX_NODES = 20_000
_MAX_STEPS = 6_000
_STEPS_OF_REFERENCES = 20
_MAX_PROBLEMS = 5
_VALUE_CHARACTERS = 80
_EXPECTED_CHARACTERS = 200
_PATTERN_SECONDS = 0.02
_PATTERN_CHARACTERS = 1_000
_UNIQUE_ITEMS = 1_000

_MAPS_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_PLAIN_DATA = frozenset({"enum", "const", "default", "examples", "example"})
_UNEVALUATED_WITH_PATTERNS = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """`problems` in words, at most five. `validated` False: the schema could not be evaluated, and `why` not."""

    problems: tuple[str, ...] = ()
    validated: bool = True
    why: str | None = None


class _Unevaluable(Exception):
    """The schema is outside the bounds."""


def check(schema: Mapping[str, Json], arguments: Json) -> Verdict:
    """Compares arguments with a schema; never raises, never fetches, bounded in time."""
    try:
        validator = _validator(_bounded(schema))
        found = list(islice(validator.iter_errors(arguments), _MAX_PROBLEMS))
    except _Unevaluable as reason:
        return Verdict(validated=False, why=str(reason))
    except Exception as failure:  # noqa: BLE001  a malformed keyword makes the validator raise anything at all
        return Verdict(validated=False, why=f"the schema cannot be evaluated ({type(failure).__name__})")
    return Verdict(tuple(_in_words(error) for error in found))


def shown(value: object, limit: int = _VALUE_CHARACTERS) -> str:
    """A value as short JSON text for an error message (characters)."""
    if isinstance(value, str):
        value = value[: limit * 2]
    elif isinstance(value, dict):
        return f"an object with {len(value)} fields"
    elif isinstance(value, list | tuple) and len(value) > 20:
        return f"an array of {len(value)} items"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return clip(sendable(text), limit, lambda _: "…").text


def _bounded(schema: object) -> dict[str, Any]:
    """A copy that is safe to evaluate. Raises _Unevaluable."""
    if not isinstance(schema, Mapping):
        raise _Unevaluable("the schema is not an object")
    seen = 0

    def copy(node: Any, depth: int) -> Any:
        nonlocal seen
        seen += 1
        if depth > _MAX_DEPTH or seen > _MAX_NODES:
            raise _Unevaluable("the schema is too deep or too large to evaluate")
        if isinstance(node, Mapping):
            skip = _UNEVALUATED_WITH_PATTERNS if "patternProperties" in node else frozenset()
            return {key: inside(key, value, depth + 1) for key, value in node.items() if key not in skip}
        if isinstance(node, list):
            return [copy(item, depth + 1) for item in node]
        return node

    def inside(key: object, value: Any, depth: int) -> Any:
        if key in _PLAIN_DATA:
            return value
        if key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            return {name: copy(part, depth + 1) for name, part in value.items()}
        return copy(value, depth)

    copied: dict[str, Any] = copy(schema, 0)
    return copied


def _validator(schema: dict[str, Any]) -> Validator:
    dialect = schema.get("$schema")
    base: type[Validator] = Draft202012Validator
    if isinstance(dialect, str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # an unknown dialect falls back to the default
            base = validator_for({"$schema": dialect}, default=Draft202012Validator)
    _steps.set(0)
    registry: referencing.Registry[Any] = referencing.Registry()
    return _guarded(base)(schema, registry=registry)


_steps: ContextVar[int] = ContextVar("schema_steps", default=0)
_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


@lru_cache(maxsize=16)
def _guarded(base: type[Validator]) -> type[Validator]:
    """The validator class with every keyword counted, and the ones that can blow up replaced."""
    keywords: dict[str, _Keyword] = {
        name: _counted(keyword, _STEPS_OF_REFERENCES if name in _REFERENCES else 1)
        for name, keyword in base.VALIDATORS.items()
    }
    keywords["pattern"] = _counted(_pattern)
    if "uniqueItems" in keywords:
        keywords["uniqueItems"] = _only_short(keywords["uniqueItems"])
    if "prefixItems" in keywords:
        keywords |= {name: _as_written(keywords[name], *older) for name, older in _OLDER.items()}
    guarded: type[Validator] = extend(base, validators=keywords)  # type: ignore[no-untyped-call]  # the library leaves this one untyped
    return guarded


def _as_written(keyword: _Keyword, older: type, meant: _Keyword) -> _Keyword:
    """Many schemas name no dialect, and speak an older one than is read then."""

    def read(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        yield from (meant if isinstance(value, older) else keyword)(validator, value, instance, schema) or ()

    return read


def _items_by_position(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`items` as a list, before draft 2020-12."""
    if not isinstance(instance, list):
        return
    rest = schema.get("additionalItems", True)
    for place, item in enumerate(instance):
        yield from validator.descend(item, value[place] if place < len(value) else rest, path=place)


def _above_minimum(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`exclusiveMinimum: true` of draft 4 speaks of `minimum`."""
    if value and is_number(instance) and is_number(schema.get("minimum")) and instance == schema["minimum"]:
        yield ValidationError("not above")


def _below_maximum(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if value and is_number(instance) and is_number(schema.get("maximum")) and instance == schema["maximum"]:
        yield ValidationError("not below")


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`required: true` at a field, as in draft 3: what it asks for stands in no list."""
    yield from ()


_OLDER: Mapping[str, tuple[type, _Keyword]] = {
    "items": (list, _items_by_position),
    "exclusiveMinimum": (bool, _above_minimum),
    "exclusiveMaximum": (bool, _below_maximum),
    "required": (bool, _nothing),
}
"""Keywords with the type that their value has in an older dialect, and what it means there."""


def _counted(keyword: _Keyword, cost: int = 1) -> _Keyword:
    """References that fan out can make a small schema cost exponential time; following one costs the most."""

    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        steps = _steps.get() + cost
        _steps.set(steps)
        if steps > _MAX_STEPS:
            raise _Unevaluable("evaluating the schema takes too many steps")
        yield from keyword(validator, value, instance, schema) or ()

    return counted


def _only_short(keyword: _Keyword) -> _Keyword:
    """Comparing every pair of a long list takes quadratic time."""

    def bounded(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, list) or len(instance) <= _UNIQUE_ITEMS:
            yield from keyword(validator, value, instance, schema) or ()

    return bounded


def _pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """A pattern that is broken, huge, or slow on this text counts as met: it cannot be evaluated."""
    if not isinstance(instance, str) or not isinstance(value, str) or len(value) > _PATTERN_CHARACTERS:
        return
    try:
        met = regex.search(value, instance, timeout=_PATTERN_SECONDS)
    except (regex.error, TimeoutError, RecursionError, MemoryError):
        return
    if met is None:
        yield ValidationError("the pattern is not met")


def _in_words(error: ValidationError) -> str:
    place = path_text(error.absolute_path)
    return sendable(clip(f"{place}: {_expectation(error)}, got {shown(error.instance)}", 400, lambda _: "…").text)


def path_text(path: Sequence[str | int]) -> str:
    """`items[0].name`, bounded; `arguments` for the whole."""
    text = ""
    for step in islice(path, 12):
        text += f"[{step}]" if isinstance(step, int) else f".{shown(step, 60)[1:-1]}"
    return text.lstrip(".") or "arguments"


def _expectation(error: ValidationError) -> str:
    keyword, value = str(error.validator), error.validator_value
    if keyword == "type":
        names = value if isinstance(value, list) else [value]
        return f"must be {' or '.join(str(name) for name in names[:8])}"
    if keyword == "required" and isinstance(error.instance, dict) and isinstance(value, list):
        missing = [name for name in value if isinstance(name, str) and name not in error.instance]
        return f"must have {shown(missing[:10], _EXPECTED_CHARACTERS)}"
    if keyword == "enum" and isinstance(value, list):
        return f"must be one of {shown(value[:20], _EXPECTED_CHARACTERS)}"
    if keyword in {"anyOf", "oneOf"}:
        return "must have one of the allowed forms"
    if keyword == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {}) if isinstance(error.schema, Mapping) else {}
        surplus = [name for name in error.instance if name not in known]
        return f"must not have {shown(surplus[:10], _EXPECTED_CHARACTERS)}"
    return f"must meet {shown(keyword)[1:-1]} {shown(value, _EXPECTED_CHARACTERS)}"
