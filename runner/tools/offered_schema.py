"""A tool's parameter schema, made fit to be shown to a model (D1, S7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from runner.conversation.cut import head, sendable
from runner.events import Json
from runner.guards import defang

_MAX_DEPTH = 32
_MAX_NODES = 5_000
_MAX_CHARACTERS = 60_000
_DESCRIPTION_CHARACTERS = 2_000
_NO_ARGUMENTS: dict[str, Json] = {"type": "object", "properties": {}}
_MAPS_OF_SCHEMAS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_WORDS = frozenset({"description", "title", "$comment"})


def offered_schema(parameters: object) -> tuple[dict[str, Json], str | None]:
    """The schema of an object, and a line for the log where something had to change.

    None means no arguments. Bounded: 32 levels, 5,000 nodes, 60,000 characters; what is beyond becomes "anything".
    Texts are made inert, fields with control markers in their names are dropped, and a `$ref` that leaves the
    schema becomes "anything" too.
    """
    if parameters is None:
        return dict(_NO_ARGUMENTS), None
    if not isinstance(parameters, Mapping):
        return dict(_NO_ARGUMENTS), "its parameters are no schema; it is offered without arguments"
    if parameters.get("type", "object") != "object":
        return dict(_NO_ARGUMENTS), "its schema is not that of an object; it is offered without arguments"
    cleaner = _Cleaner()
    schema = cleaner.schema(parameters, 0)
    schema["type"] = "object"
    if not isinstance(schema.get("properties"), dict):
        schema["properties"] = {}
    return schema, cleaner.note()


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
            else:
                clean[key] = self._value(value, depth + 1)
        return clean

    def _named(self, parts: Mapping[Any, Any], depth: int) -> dict[str, Json]:
        clean: dict[str, Json] = {}
        for name, part in parts.items():
            if not isinstance(name, str) or defang(name) != name or sendable(name) != name:
                self._changes.add("a field with an unusable name was dropped")
            elif self._fits(name, depth):
                clean[name] = self.schema(part, depth + 1) if isinstance(part, Mapping) else self._value(part, depth)
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
