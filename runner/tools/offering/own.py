"""A tool's own schema, bounded and with inert words: what arguments are checked against (D1, D3, S7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runner.conversation.cut import head, sendable
from runner.guards import defang
from runner.host.events import Json
from runner.tools.offering.values import TYPES

_MAX_DEPTH = 32
_MAX_NODES = 5_000
_MAX_CHARACTERS = 60_000
_DESCRIPTION_CHARACTERS = 2_000
_TYPE_CHARACTERS = 64
_MAPS_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_WORDS = frozenset({"description", "title", "$comment"})


def own_schema(parameters: Mapping[Any, Any]) -> tuple[dict[str, Json], str | None]:
    """The schema, and a line for the log where something had to change.

    Bounded: 32 levels, 5,000 nodes, 60,000 characters; what is beyond becomes "anything". Texts and names of fields are
    made inert, and a `$ref` that leaves the schema becomes "anything" too.
    """
    cleaner = _Cleaner()
    return cleaner.schema(parameters, 0), cleaner.note()


class _Cleaner:
    def __init__(self) -> None:
        self._nodes = 0
        self._characters = 0
        self._changes: set[str] = set()

    def note(self) -> str | None:
        return f"its schema was changed: {', '.join(sorted(self._changes))}" if self._changes else None

    def schema(self, node: Mapping[Any, Any], depth: int) -> dict[str, Json]:
        reference = node.get("$ref")
        if reference is not None and not (isinstance(reference, str) and reference.startswith("#")):
            self._changes.add("a reference to elsewhere was replaced")
            return {}
        clean: dict[str, Json] = {}
        for key, value in node.items():
            if not isinstance(key, str) or not self._fits(key, depth):
                continue
            if key in _WORDS and isinstance(value, str):
                clean[key] = self._text(head(value, _DESCRIPTION_CHARACTERS))
            elif key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
                clean[key] = self._named(value, depth + 1)
            elif key == "type":
                clean[key] = _type_names(value)
            else:
                clean[key] = self._value(value, depth + 1)
        return clean

    def _named(self, parts: Mapping[Any, Any], depth: int) -> dict[str, Json]:
        clean: dict[str, Json] = {}
        for name, part in parts.items():
            if not isinstance(name, str) or sendable(name) != name:
                self._changes.add("a field with an unusable name was dropped")
            elif self._fits(name, depth):
                inert = defang(name)
                clean[inert] = self.schema(part, depth + 1) if isinstance(part, Mapping) else self._value(part, depth)
        return clean

    def _value(self, value: Any, depth: int) -> Json:
        if isinstance(value, Mapping):
            return self.schema(value, depth) if self._fits("", depth) else {}
        if isinstance(value, list | tuple):
            return [self._value(item, depth + 1) for item in value if self._fits("", depth)]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if isinstance(value, bool | int | float) else None

    def _text(self, text: str) -> str:
        room = max(0, _MAX_CHARACTERS - self._characters)
        self._characters += len(text)
        if len(text) > room:
            self._changes.add("it is too large")
        return sendable(head(defang(text), room))

    def _fits(self, name: str, depth: int) -> bool:
        self._nodes += 1
        self._characters += len(name)
        if depth <= _MAX_DEPTH and self._nodes <= _MAX_NODES and self._characters <= _MAX_CHARACTERS:
            return True
        self._changes.add("it is too deep" if depth > _MAX_DEPTH else "it is too large")
        return False


def _type_names(value: Any) -> Json:
    """The names of types as they are spelled; some generators write them in capitals. `None` where there are none."""
    if isinstance(value, list):
        return [_type_names(name) for name in value[: len(TYPES)]]
    if not isinstance(value, str):
        return None
    return value.lower() if value.lower() in TYPES else defang(sendable(value[:_TYPE_CHARACTERS]))
