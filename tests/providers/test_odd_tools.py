"""Tools as strangers describe them are offered in a way that every provider takes (K3, D1)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.host import Tool
from tests.providers.catalogue import DRIVEN, Case
from tests.providers.said import Said
from tests.providers.scene import scene

LONG = 60
"""Seconds after which a chat hangs, on any machine."""

ONE_EACH = list({case.provider: case for case in DRIVEN}.values())

SCHEMAS: dict[str, dict[str, Any]] = {
    "a field of anything": {"type": "object", "properties": {"raw": True, "q": {"type": "string"}}},
    "items of anything": {"type": "object", "properties": {"q": {"type": "array", "items": True}}},
    "a list without items": {"type": "object", "properties": {"q": {"type": "array"}}},
    "a tuple": {
        "type": "object",
        "properties": {"q": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    },
    "several types": {"type": "object", "properties": {"q": {"type": ["string", "null"]}}},
    "an object or nothing": {"type": ["object", "null"], "properties": {"q": {"type": "string"}}},
    "no type": {"properties": {"q": {"type": "string"}}},
    "no type of a field": {"type": "object", "properties": {"q": {"description": "what to find"}}},
    "alternatives at the top": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "id": {"type": "integer"}},
        "anyOf": [{"required": ["q"]}, {"required": ["id"]}],
    },
    "type beside alternatives": {
        "type": "object",
        "properties": {"q": {"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 9}]}},
    },
    "numbers to choose from": {"type": "object", "properties": {"q": {"type": "integer", "enum": [1, 2]}}},
    "a constant": {"type": "object", "properties": {"q": {"const": "tea"}}},
    "a reference": {
        "type": "object",
        "properties": {"q": {"$ref": "#/$defs/word"}},
        "$defs": {"word": {"type": "string", "format": "uri", "pattern": "tea"}},
    },
    "names that few take": {
        "type": "object",
        "properties": {"$top": {"type": "integer"}, "要找的": {"type": "string"}},
    },
    "a text of two million letters": {
        "type": "object",
        "properties": {"q": {"type": "string", "maxLength": 2_000_000}},
    },
}


TYPES_WANTED = {"Kimi", "llama.cpp"}
"""Providers that refuse a field which may be anything. No type would be true for it, so they are asked once more with
less (K7), and that is remembered."""


@pytest.mark.parametrize("case", ONE_EACH, ids=str)
async def test_K3_tools_as_strangers_describe_them_are_taken_by_every_provider(case: Case) -> None:
    described = enumerate(SCHEMAS.items())
    tools = [Tool(f"tool {number}", description=what, parameters=schema) for number, (what, schema) in described]
    async with asyncio.timeout(LONG), scene(case, tools=tools) as chat:
        chat.provider.say(Said("Good day."), Said("Good night."))
        runs = [await chat.say("hello"), await chat.say("good night")]
        refused = len(chat.refused())
        heard = chat.provider.heard
    assert [(run.status, run.final_text) for run in runs] == [("completed", "Good day."), ("completed", "Good night.")]
    assert (refused, len(heard)) == ((1, 3) if case.provider in TYPES_WANTED else (0, 2))
    assert len(heard[0].tools) == len(SCHEMAS)
