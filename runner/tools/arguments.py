"""What a model's call says: its arguments, or why they cannot be read (D3, S1)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from callformats import State, decoded, read_json, why_not
from runner.conversation.cut import clip, sendable
from runner.guards import restore_value
from runner.host.events import Json
from runner.tools.offering import with_names
from runner.tools.schemas import check

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 64
_RAW_CHARACTERS = 300
_MOST_MENDED = 5_000
"""Values, keys and separators of a broken text that are looked at: some 20 ms, in which other chats wait (Sm)."""
BROKEN_IN_HISTORY = "{}"
"""What stands in the history for a broken call: a model imitates what it sees, and every provider takes it (D3)."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Readable arguments. `values` is what the tool gets; `text` is the canonical JSON text for the history.

    Inert markers are live again in `values` and stay inert in `text` (S7). `mended`: more than parsing was needed.
    `problems`: what the schema says against them; empty too where the schema cannot be evaluated (`unchecked` why).
    `stray`: fields were dropped that mean nothing to the tool (K5).
    """

    values: dict[str, Json]
    text: str
    mended: bool = False
    problems: tuple[str, ...] = ()
    unchecked: str | None = None
    stray: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """Arguments that must not run. `problem` is for the model; `raw` is what came, at most 300 characters."""

    problem: str
    raw: str


_DECLARE_FIELDS = frozenset(
    {"patternProperties", "dependentSchemas", "dependencies", "propertyNames", "minProperties", "required"}
    | {"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "enum", "const"}
)


class _Unreadable(Exception):
    """`str()` says why, for the model."""


class Strays(Enum):
    """Which fields are dropped that a model gives to a tool which declares none (Claude: `_call`, K5).

    Where a call acts on the platform, or the Host told no schema, only `MARKED` ones, which begin with an underscore:
    another name may say what it is to act on.
    """

    KEPT = "kept"
    MARKED = "marked"
    ANY = "any"


def read_arguments(
    raw: object,
    schema: Mapping[str, Json],
    *,
    strict: bool = False,
    drop: Strays = Strays.KEPT,
    fields: Mapping[str, str] = MappingProxyType({}),
) -> Arguments | Broken:
    """Reads the arguments of a call as the model wrote them: a JSON text, or an object already.

    `""`, `null` and `{}` are no arguments. Never raises and never invents; mended arguments count only when the schema
    was evaluated and accepts them. `strict` (J3): no mending, and the schema has the last word over all arguments.
    `drop`: what is dropped where the schema takes no fields (K5). `fields`: names of fields that were offered under
    other ones (K3); the history keeps those.
    """
    try:
        given, mended = _values(raw, strict)
        values = _without_strays(with_names(given, fields), schema, drop)
        if not strict:
            read = _clean_object(decoded(schema, values), 0)
            values, mended = read, mended or read != values
        text = canonical(with_names(values, {own: offered for offered, own in fields.items()}))
    except _Unreadable as reason:
        return Broken(str(reason), _raw_text(raw))
    except ValueError:  # a number of thousands of digits in arguments that came as an object
        return Broken("a number in them is too large", _raw_text(raw))
    verdict = check(schema, dict(values))
    if strict and not verdict.validated:
        return Broken("the tool's schema cannot be evaluated, and this tool needs that", text[:_RAW_CHARACTERS])
    if (strict or mended) and verdict.problems:
        return Broken("; ".join(verdict.problems), clip(text, _RAW_CHARACTERS).text)
    if mended and not verdict.validated:
        return Broken("they are no valid JSON, and the tool's schema cannot confirm a mended reading", _raw_text(raw))
    return Arguments(_restored(values), text, mended, verdict.problems, verdict.why, len(values) < len(given))


def canonical(values: Mapping[str, Json]) -> str:
    """One spelling of the JSON text of an object: compact, readable characters, order kept."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _restored(values: dict[str, Json]) -> dict[str, Json]:
    restored = restore_value(values)
    return restored if isinstance(restored, dict) else values


def _takes_no_fields(schema: Mapping[str, Json]) -> bool:
    """Whether a tool's schema declares no field at all, so that whatever a model adds means nothing to the tool (K5).

    One that takes fields of any name says so by `additionalProperties`, be it `true` or a schema.
    """
    if any(schema.get(keyword) for keyword in ("properties", *_DECLARE_FIELDS)):
        return False
    return not any(
        schema.get(keyword, False) is not False for keyword in ("additionalProperties", "unevaluatedProperties")
    )


def _without_strays(values: dict[str, Json], schema: Mapping[str, Json], drop: Strays) -> dict[str, Json]:
    if drop is Strays.KEPT or not _takes_no_fields(schema):
        return values
    return {name: value for name, value in values.items() if drop is Strays.MARKED and not name.startswith("_")}


def _says_nothing(raw: object) -> bool:
    return raw is None or (isinstance(raw, str) and raw.strip() in ("", "null"))


def _values(raw: object, strict: bool) -> tuple[dict[str, Json], bool]:
    mended = False
    if isinstance(raw, str):
        raw, mended = _parsed(raw, strict)
        if isinstance(raw, str) and not strict:
            raw, twice = _parsed(raw, strict)
            mended = mended or twice
    if _says_nothing(raw):
        return {}, mended
    if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], Mapping) and not strict:
        raw, mended = raw[0], True
    if not isinstance(raw, Mapping):
        raise _Unreadable(f"they must be a JSON object, not {_name_of(raw)}")
    return _clean_object(raw, 0), mended


def _parsed(text: str, strict: bool) -> tuple[object, bool]:
    """The JSON value of a text, and whether it had to be mended. An empty text is an empty object."""
    text = text.strip()
    if not text:
        return {}, False
    if len(text) > MAX_CHARACTERS:
        raise _Unreadable(f"they are longer than {MAX_CHARACTERS:,} characters")
    try:
        return _load(text), False
    except ValueError as failure:
        if strict:
            raise _Unreadable(f"they are no valid JSON: {_parse_error(failure)}") from None
        return _mended(text, _parse_error(failure)), True


def _mended(text: str, problem: str) -> object:
    """The one reading of a text that is no JSON (Sl)."""
    parsed = read_json(text, _MOST_MENDED)
    if parsed.doubled is not None:
        raise _doubled(parsed.doubled)
    if parsed.state in (State.CUT, State.BROKEN):
        raise _Unreadable(f"they are no valid JSON: {problem}")
    if (why := why_not(parsed.repairs)) is not None:
        raise _Unreadable(f"they are no valid JSON: {why}")
    return parsed.value


def _load(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unambiguous)
    except RecursionError:
        raise _Unreadable("they are nested too deeply") from None


def _parse_error(failure: ValueError) -> str:
    if isinstance(failure, json.JSONDecodeError):
        return f"{failure.msg} (character {failure.pos + 1})"
    return clip(str(failure), 200).text


def _no_constant(name: str) -> float:
    raise _Unreadable(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Unreadable("a number in them is too large")
    return number


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two different values under one name have no single reading; the same value twice has."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values and values[name] != value:
            raise _doubled(name)
        values[name] = value
    return values


def _doubled(name: str) -> _Unreadable:
    return _Unreadable(f'"{clip(sendable(name), 80).text}" is given twice with different values')


def _clean_object(values: Mapping[Any, Any], depth: int) -> dict[str, Json]:
    clean: dict[str, Json] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise _Unreadable("a field name in them is no string")
        clean[sendable_surrogates(name)] = _clean(value, depth + 1)
    return clean


def _clean(value: Any, depth: int) -> Json:
    if depth > MAX_DEPTH:
        raise _Unreadable(f"they are nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return sendable_surrogates(value)
    if isinstance(value, float):
        return _finite(repr(value))
    if isinstance(value, Mapping):
        return _clean_object(value, depth)
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    raise _Unreadable(f"a value in them is {_name_of(value)}")


def sendable_surrogates(text: str) -> str:
    """The text without lone surrogates, which cannot be sent; two that belong together are one character (K5). Other
    characters are the tool's business."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text


def _name_of(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return names.get(type(value), f"a value of type {type(value).__name__}")


def _raw_text(raw: object) -> str:
    if isinstance(raw, str):
        return sendable(clip(raw, _RAW_CHARACTERS).text)
    return _name_of(raw) if not isinstance(raw, Mapping) else "an object"
