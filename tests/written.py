"""Calls as weak models write them into their text."""

from __future__ import annotations

import json
from typing import Any


def tags(name: str, /, **arguments: Any) -> str:
    """As Hermes and Qwen models do."""
    return f"<tool_call>\n{bare(name, **arguments)}\n</tool_call>"


def bare(name: str, /, **arguments: Any) -> str:
    """As plain JSON."""
    return json.dumps({"name": name, "arguments": arguments})


def says(text: str) -> str:
    """An answer by the reply tool."""
    return bare("reply_to_user", text=text)


LOOK = bare("get_weather", city="Oslo")
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
"""The parameters of that tool, and of many others: one that is required."""
