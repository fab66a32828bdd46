"""Alternatives as one schema that lets through whatever one of them does (K3).

Providers take alternatives of different types only, so those of one type become one: of objects the fields of all,
of strings the values of all. What each of them asks for is told in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from runner.conversation.cut import head
from runner.host.events import Json

Made = dict[str, Json]
"""A schema that lies in the offered part already."""

_WAYS_CHARACTERS = 800
_WORDS_CHARACTERS = 600
_NUMBERS = frozenset({"number", "integer"})


def joined(options: Sequence[Made]) -> Made:
    """One schema for some alternatives; `{}` once one of them lets anything through."""
    flat: list[Made] = [*chain.from_iterable(_branches(option) for option in options)]
    if not flat or any("type" not in option for option in flat):
        return {}
    if len(flat) == 1:
        return flat[0]
    types = list(dict.fromkeys(str(option["type"]) for option in flat))
    if set(types) >= _NUMBERS:
        types.remove("integer")
    branches = [_of_one_type(name, [option for option in flat if _belongs(option, name, types)]) for name in types]
    return branches[0] if len(branches) == 1 else {"anyOf": [*branches]}


def _branches(option: Made) -> list[Any]:
    branches = option.get("anyOf")
    return branches if isinstance(branches, list) else [option]


def _belongs(option: Made, name: str, types: list[str]) -> bool:
    return option["type"] == name or (name == "number" and "integer" not in types and option["type"] == "integer")


def _of_one_type(name: str, options: list[Made]) -> Made:
    distinct = [option for place, option in enumerate(options) if option not in options[:place]]
    if len(distinct) == 1:
        return distinct[0]
    made: Made = {"type": name}
    if name == "object":
        made.update(_object(distinct))
    elif name == "array":
        made["items"] = joined([_mapping(option.get("items")) for option in distinct])
    elif name == "string" and all("enum" in option for option in distinct):
        made["enum"] = [*dict.fromkeys(value for option in distinct for value in _list(option["enum"]))]
    made.update(_widest(distinct))
    if words := _words(name, distinct):
        made["description"] = words
    return made


def _object(options: list[Made]) -> Made:
    parts = [_mapping(option.get("properties")) for option in options]
    names = dict.fromkeys(chain.from_iterable(parts))
    fields = {name: joined([_mapping(part[name]) for part in parts if name in part]) for name in names}
    required = [_list(option.get("required")) for option in options]
    made: Made = {"properties": {**fields}}
    if common := [name for name in required[0] if all(name in others for others in required)]:
        made["required"] = common
    # What one alternative closes itself against may be a field of another.
    if all(option.get("additionalProperties") is False for option in options):
        made["additionalProperties"] = False
    return made


def _widest(options: list[Made]) -> Made:
    """The bounds within which the values of all alternatives lie; none where one has none."""
    made: Made = {}
    for word, choose in (
        ("minimum", min),
        ("minLength", min),
        ("minItems", min),
        ("maximum", max),
        ("maxLength", max),
        ("maxItems", max),
    ):
        limits: list[Any] = [option.get(word) for option in options]
        if None not in limits:
            made[word] = choose(limits)
    return made


def _words(name: str, options: list[Made]) -> str:
    """What the alternatives say of themselves, and of objects which fields go together."""
    described = [*dict.fromkeys(_described(option) for option in options)]
    said = head("; ".join(filter(None, described)), _WORDS_CHARACTERS)
    ways = [*dict.fromkeys(filter(None, map(_way, options)))] if name == "object" else []
    together = head(f"One of these ways: {'; '.join(ways)}.", _WAYS_CHARACTERS) if len(ways) > 1 else ""
    return " ".join(filter(None, [said, together]))


def _described(option: Made) -> str:
    words = option.get("description", option.get("title"))
    if not isinstance(words, str):
        return ""
    values = _list(option.get("enum"))
    return f"{json.dumps(values[0], ensure_ascii=False)}: {words}" if len(values) == 1 else words


def _way(option: Made) -> str:
    """`kind "circle", radius`: the fields that one alternative asks for, with their values where only one is right."""
    fields, required = _mapping(option.get("properties")), _list(option.get("required"))
    told = []
    for name in required or fields:
        values = _list(_mapping(fields.get(str(name))).get("enum"))
        told.append(f"{name} {json.dumps(values[0], ensure_ascii=False)}" if len(values) == 1 else str(name))
    return ", ".join(told)


def _mapping(value: Any) -> Made:
    return dict(value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
