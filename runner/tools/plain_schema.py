"""The plainest form of a tool, for a model whose provider refused its schema (K7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from runner.conversation.request import ToolSpec
from runner.host.events import Json

_SIMPLE: Final = ("string", "integer", "number", "boolean")


def plainest(tool: ToolSpec) -> ToolSpec | None:
    """The tool with fields of one simple type each and nothing said of them but a description.

    Fields of any other kind are left out, for example lists. None: the tool cannot be called without one of those.
    """
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    known = properties if isinstance(properties, Mapping) else {}
    fields: dict[str, Json] = {name: plain for name, field in known.items() if (plain := _plain(field)) is not None}
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    if not fields.keys() >= set(needed):
        return None
    schema: dict[str, Json] = {"type": "object", "properties": fields}
    return replace(tool, parameters={**schema, "required": [*needed]} if needed else schema, altered=False)


def _plain(field: Json) -> dict[str, Json] | None:
    if not isinstance(field, Mapping) or field.get("type") not in _SIMPLE:
        return None
    description = field.get("description")
    return {"type": field["type"], **({"description": description} if isinstance(description, str) else {})}
