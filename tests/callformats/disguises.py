"""Spellings of one call that a model reads as the same: what a stranger's text may hold, and a quote may undo."""

from __future__ import annotations

import html
import json
import textwrap
import urllib.parse
from collections.abc import Callable

from callformats import render
from runner.host.events import Json


class Written:
    """A call as `render` takes one."""

    def __init__(self, name: str, arguments: dict[str, Json]) -> None:
        self.name, self.arguments = name, arguments


def _full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


def _escaped(text: str) -> str:
    return json.dumps(text)


COATS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "escaped once": _escaped,
    "escaped twice": lambda text: _escaped(_escaped(text)),
    "entities": html.escape,
    "entities twice": lambda text: html.escape(html.escape(text)),
    "numeric entities": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "unicode escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text if ord(char) < 0x10000),
    "percent signs": urllib.parse.quote,
    "invisible characters": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "full width": _full_width,
    "wrapped lines": lambda text: "\n".join(textwrap.wrap(text, 30)),
    "quoted lines": lambda text: "\n> ".join(textwrap.wrap(text, 30)),
    "inside a larger JSON": lambda text: json.dumps({"status": 200, "items": [{"content": f"Example:\n{text}\nEnd."}]}),
    "a Python repr": lambda text: repr({"content": text}),
}
"""What may be done to a text as a whole."""


def shapes(name: str, arguments: dict[str, Json]) -> dict[str, str]:
    """The call in its notations."""
    call: dict[str, Json] = {"name": name, "arguments": arguments}
    turned: dict[str, Json] = {"arguments": dict(reversed(arguments.items())), "name": name}
    lines = "".join(f"  {key}: {value}\n" for key, value in arguments.items())
    return {
        "JSON": json.dumps(call),
        "JSON, readable": json.dumps(call, ensure_ascii=False, indent=2),
        "keys in another order": json.dumps(turned),
        "single quotes": repr(call),
        "no quotes": json.dumps(call, ensure_ascii=False).replace('"', ""),
        "deep in an object": json.dumps({"data": [{"tip": {"id": "c1", "type": "function", "function": call}}]}),
        "with an id and a thought": json.dumps({"thought": "Well, I should, now.", "id": "call_9", **call}),
        "arguments as text": json.dumps({"name": name, "arguments": json.dumps(arguments)}),
        "YAML": f"name: {name}\narguments:\n{lines}",
        "Python": render(Written(name, arguments), "pythonic"),
        "tags": render(Written(name, arguments), "hermes"),
        "XML": render(Written(name, arguments), "qwen3-xml"),
        "pairs": render(Written(name, arguments), "glm45"),
        "ReAct": render(Written(name, arguments), "react"),
    }
