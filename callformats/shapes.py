"""From JSON values to candidates: every shape in which models wrap a name and its arguments (S1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from callformats.block import Candidate
from callformats.json_value import Json
from callformats.loose_json import Parsed, State, parse
from callformats.repairs import CLOSERS, Repair, why_not
from callformats.scan import skip_space

NAME_KEYS = ("name", "tool_name", "tool", "function_name", "function", "action", "call")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "action_input", "tool_input")
LIST_KEYS = ("tool_calls", "tool_call", "function_call", "function_calls", "calls", "actions")
ID_KEYS = ("id", "tool_call_id", "call_id")
_META_KEYS = frozenset((*ID_KEYS, "type", "index", "role"))
_REASON_KEYS = ("thought", "thoughts")
CALL_KEYS = frozenset((*NAME_KEYS, *ARGUMENT_KEYS, *LIST_KEYS, *_META_KEYS, *_REASON_KEYS))
"""Keys one of which comes first in an object that may be a call."""

_NESTING = 4


def candidates(parsed: Parsed, raw: str) -> tuple[Candidate, ...]:
    """The candidates a value holds, in order; empty when it has no shape of a call."""
    found = merge_halves(tuple(_from_value(parsed.value, 0)))
    return tuple(
        replace(
            one,
            raw=raw,
            cut=parsed.state is State.CUT,
            mended=one.mended or parsed.mended,
            exact=parsed.exact,
            unsure=why_not(parsed.repairs | _beside(parsed)) is not None,
            doubled=parsed.doubled,
        )
        for one in found
    )


def _beside(parsed: Parsed) -> AbstractSet[Repair]:
    """Something beside the arguments that no call has, while closers are not where they should be: it may belong to the
    arguments, as in {"name": …, "arguments": {"a": 1}, "b": 2}}.
    """
    value = parsed.value
    if not isinstance(value, dict) or not parsed.repairs & CLOSERS:
        return frozenset()
    given = any(value.get(key) for key in ARGUMENT_KEYS)
    return {Repair.BESIDE} if given and not value.keys() <= CALL_KEYS else frozenset()


def _from_value(value: Json, depth: int) -> list[Candidate]:
    if depth > _NESTING:
        return []
    if isinstance(value, list):
        return [found for item in value for found in _from_value(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    return _from_object(value, depth)


def _from_object(value: dict[str, Json], depth: int) -> list[Candidate]:
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is not None:
        return [_named(value, name_key)]
    for key in (*NAME_KEYS, *LIST_KEYS):
        inner = value.get(key)
        if isinstance(inner, dict | list):
            return _from_value(_with_outer_arguments(inner, value), depth + 1)
    if len(value) == 1:
        # {"get_weather": {"city": …}}
        ((name, arguments),) = value.items()
        if isinstance(arguments, dict) and name not in CALL_KEYS:
            return [Candidate(name, arguments)]
    return [Candidate("", dict(value))] if value else []


def _with_outer_arguments(inner: dict[str, Json] | list[Json], outer: Mapping[str, Json]) -> Json:
    """{"function": {"name": …}, "arguments": …}: the arguments may stand outside."""
    if isinstance(inner, dict) and not any(key in inner for key in ARGUMENT_KEYS):
        return {**inner, **{key: outer[key] for key in ARGUMENT_KEYS if key in outer}}
    return inner


def _named(value: dict[str, Json], name_key: str) -> Candidate:
    name = value[name_key]
    assert isinstance(name, str)
    own_id = next((found for key in ID_KEYS if isinstance(found := value.get(key), str)), None)
    written = next((key for key in ARGUMENT_KEYS if key in value), None)
    flat = {
        key: item
        for key, item in value.items()
        if key != name_key and key not in _META_KEYS and key not in ARGUMENT_KEYS
    }
    arguments = value[written] if written is not None else None
    if isinstance(arguments, list) and len(arguments) == 1 and isinstance(arguments[0], dict):
        return Candidate(name, arguments[0], id=own_id, mended=True)
    if arguments not in (None, {}, ""):
        return Candidate(name, arguments, id=own_id)
    beside = {key: value[key] for key in _META_KEYS if key in value}
    return Candidate(name, flat or arguments, id=own_id, flat=bool(flat), beside=beside)


def of_body(name: str, body: str, *, ended: bool) -> Candidate:
    """A call whose name stood outside and whose body is its arguments alone. `ended`: the body's own end was there, so
    that the text does not end inside a value."""
    parsed = parse(body + "\n" if ended else body)
    if parsed.state is State.WHOLE:
        parsed = past_value(body, parsed)
    return replace(of_value(name, parsed, body), broken=parsed.state is State.BROKEN and bool(body.strip()))


def of_value(name: str, parsed: Parsed, raw: str, *, closed: bool = True) -> Candidate:
    """A call whose name stood before the value of its arguments. `closed`: what ends such a call was there."""
    return Candidate(
        name,
        parsed.value,
        raw,
        mended=parsed.mended or not closed,
        exact=parsed.exact,
        unsure=why_not(parsed.repairs) is not None,
        cut=parsed.state is State.CUT,
        doubled=parsed.doubled,
    )


def goes_on(text: str, end: int, *, closes: bool) -> bool:
    """Whether what stands behind a value may go on with it. `closes`: calls of the format have closers, so that prose
    in the same line is not expected either."""
    at = skip_space(text, end)
    if at >= len(text) or text[at] in "<[`":
        return False
    return text[at] in ",:=\"'{(" or (closes and "\n" not in text[end:at])


def past_value(text: str, parsed: Parsed, *, closes: bool = True) -> Parsed:
    """The arguments of a call up to where its end is to be, past closers too many. What goes on there as a value does
    may belong to them (Sl)."""
    end = parsed.end
    while text[(at := skip_space(text, end)) : at + 1] in ("}", "]"):
        end = at + 1
    repairs = set(parsed.repairs)
    if end > parsed.end:
        repairs.add(Repair.STRAY_CLOSERS)
    if goes_on(text, end, closes=closes):
        repairs.add(Repair.BEHIND)
    return replace(parsed, end=at, repairs=frozenset(repairs))


def put(values: dict[str, Json], key: str, value: Json) -> str | None:
    """Adds an argument; gives its key if it stands there already with another value. The first one stays."""
    return key if values.setdefault(key, value) != value else None


def merge_halves(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """A name alone, followed by arguments alone, is one call in two pieces."""
    merged: list[Candidate] = []
    for one in found:
        last = merged[-1] if merged else None
        if (
            not one.name
            and last is not None
            and last.name
            and last.arguments is None
            and isinstance(one.arguments, dict)
        ):
            merged[-1] = replace(last, arguments=one.arguments, mended=True, raw=last.raw + one.raw)
        else:
            merged.append(one)
    return tuple(merged)


def dumps(value: Json | Mapping[str, Json]) -> str:
    """JSON for a model: readable characters as they are, lone surrogates replaced."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
