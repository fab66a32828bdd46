"""The JSON schema that a server is asked to hold a reply to: one branch for each tool shown (S8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from runner.conversation.request import ToolSpec
from runner.host.events import Json
from runner.tools import compact_schema


def response_format(tools: Sequence[ToolSpec]) -> dict[str, Json]:
    """`{"response_format": …}` for the model call: the reply is one call of one of the tools.

    The name stands before the arguments, so that a reply can be read while it is written.
    """
    schema: dict[str, Json] = {"anyOf": [_branch(tool) for tool in tools]}
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "call", "strict": True, "schema": schema},
        }
    }


def _branch(tool: ToolSpec) -> Json:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": _closed(compact_schema(tool.parameters))},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _closed(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The same without words: descriptions guide no grammar. An object with listed fields takes no others."""
    closed = {name: part for name, part in schema.items() if name != "description"}
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, dict):
        closed["properties"] = {name: _closed(part) for name, part in properties.items() if isinstance(part, dict)}
        closed["additionalProperties"] = False
    if isinstance(items, dict):
        closed["items"] = _closed(items)
    return closed
