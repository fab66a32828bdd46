"""K7: the plainest form of a tool."""

from __future__ import annotations

from typing import Any

import pytest

from runner.conversation.request import ToolSpec
from runner.tools.plain_schema import plainest


def tool(properties: Any, **more: Any) -> ToolSpec:
    return ToolSpec("find", "Finds.", {"type": "object", "properties": properties, **more}, altered=True)


def test_K7_fields_keep_their_simple_type_and_their_description() -> None:
    odd = tool(
        {
            "q": {"type": "string", "description": "What.", "pattern": "^a", "examples": ["a"]},
            "most": {"type": "integer", "minimum": 1, "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"$ref": "#/$defs/place"},
        },
        required=["q"],
        additionalProperties=False,
    )
    assert plainest(odd) == ToolSpec(
        "find",
        "Finds.",
        {
            "type": "object",
            "properties": {"q": {"type": "string", "description": "What."}, "most": {"type": "integer"}},
            "required": ["q"],
        },
    )


@pytest.mark.parametrize("needed", [["tags"], ["q", "tags"], ["gone"]])
def test_K7_a_tool_that_needs_more_than_that_is_not_offered(needed: list[str]) -> None:
    assert plainest(tool({"q": {"type": "string"}, "tags": {"type": "array"}}, required=needed)) is None


@pytest.mark.parametrize("properties", [{}, None, [], {"q": True}, {"q": None}, {"q": {"type": ["string", "null"]}}])
def test_K7_whatever_the_fields_are_the_rest_is_the_schema_of_an_object(properties: Any) -> None:
    plain = plainest(tool(properties, required="q"))
    assert plain is not None and plain.parameters == {"type": "object", "properties": {}}
