"""What the offered part of JSON Schema has no word for, in the words of a description (K3)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runner.conversation.cut import head
from runner.host.events import Json
from runner.tools.offering.values import Schema, is_of

DESCRIPTION_CHARACTERS = 2_000
_RULE_CHARACTERS = 200
_RULES_CHARACTERS = 400
_VALUES_CHARACTERS = 300
_EXAMPLES = 3

_OF_EVERY_TYPE = ("not", "if", "then", "else", "examples", "example")
_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("prefixItems", "items", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"),
    "object": (
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    ),
}
_CONDITION = frozenset({"if", "then", "else"})
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "additionalProperties": Mapping,
    "prefixItems": list,
    "items": list,
    "pattern": str,
    "format": str,
    "examples": list,
    "exclusiveMinimum": (int, float),
    "exclusiveMaximum": (int, float),
}
"""What a keyword must be to be worth telling, where not everything is."""


def untold(node: Schema, made: Iterable[str], name: str = "") -> dict[str, Any]:
    """What `node` says of the values of a type (`""`: of any) and the schema made of it, with the keywords `made`, does
    not."""
    words = _OF_TYPE.get(name, ()) if name else tuple(dict.fromkeys(word for of in _OF_TYPE.values() for word in of))
    said = set(made) - {"items", "additionalProperties"}
    return {
        word: node[word]
        for word in (*words, *_OF_EVERY_TYPE)
        if word in node and word not in said and node[word] is not False
        if isinstance(node[word], _KINDS.get(word, object))
    }


def with_words(made: dict[str, Json], node: Schema, rest: Mapping[str, Any]) -> dict[str, Json]:
    """The schema with title, description and default of `node`, and with `rest` in words.

    Those come first: small models are shown the beginning of a description (S2).
    """
    words = dict(made)
    said = [_rules(rest), _text(made.get("description")), _text(node.get("description"))]
    if description := head(" ".join(dict.fromkeys(filter(None, said))), DESCRIPTION_CHARACTERS):
        words["description"] = description
    if isinstance(node.get("title"), str):
        words["title"] = node["title"]
    if "default" in node and _lets_through(made, node["default"]):
        words["default"] = node["default"]
    return words


def _rules(rest: Mapping[str, Any]) -> str:
    values, examples = rest.get("enum"), rest.get("examples", [rest["example"]] if "example" in rest else [])
    rules = {word: value for word, value in rest.items() if word not in ("enum", "examples", "example")}
    short = {word: value for word, value in rules.items() if len(_json({word: value})) <= _RULE_CHARACTERS}
    if _CONDITION & rules.keys() - short.keys():
        short = {word: value for word, value in short.items() if word not in _CONDITION}
    told = _json(short) if short else ""
    return " ".join(
        filter(
            None,
            [
                f"One of {_listed(values)}." if values else "",
                f"Must meet {told}." if told and len(told) <= _RULES_CHARACTERS else "",
                f"For example {_listed(examples[:_EXAMPLES])}." if examples else "",
            ],
        )
    )


def _listed(values: Sequence[Any]) -> str:
    """Values as JSON in a row, the first ones where there are many."""
    told: list[str] = []
    room = _VALUES_CHARACTERS
    for value in values:
        text = _json(value)
        room -= len(text) + 2
        if room < 0:
            break
        told.append(text)
    more = len(values) - len(told)
    return ", ".join([*told, *([f"and {more:,} more"] if more else [])])


def _lets_through(made: Mapping[str, Any], value: Any) -> bool:
    """Whether a default may be given at all: some providers refuse a schema whose default breaks it."""
    if "anyOf" in made:
        return any(_lets_through(branch, value) for branch in made["anyOf"])
    if "enum" in made and value not in made["enum"]:
        return False
    return "type" not in made or is_of(value, str(made["type"]))


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
