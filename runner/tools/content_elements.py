"""Results that are content elements, as MCP tools and the SDK give them (D4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from runner.tools.pictures import MAX_ADDRESS

_KINDS = frozenset({"text", "image_url", "image_base64", "file_url", "file_base64"})
_FIELDS = frozenset({*_KINDS, "type", "file_name"})


def elements_of(value: object) -> list[Mapping[str, object]] | None:
    """The elements of a result: a list of them, one alone, or MCP's `{"content": […]}`; None for any other. An empty
    list has none."""
    if isinstance(value, Mapping) and isinstance(value.get("content"), list):
        said = [name for name, part in value.items() if part and not str(name).startswith("_")]
        value = value["content"] if said == ["content"] else None
    elements = value if isinstance(value, list) else [value]
    return elements if elements and _are_elements(elements) else None


def _are_elements(items: list[object]) -> TypeGuard[list[Mapping[str, object]]]:
    return all(map(_is_element, items))


def _is_element(item: object) -> bool:
    if not isinstance(item, Mapping):
        return False
    return item.get("type") == "image" or (item.get("type") in tuple(_KINDS) and item.keys() <= _FIELDS)


def text_of(elements: Sequence[Mapping[str, object]], taken: Sequence[object]) -> str:
    """The elements in words, a line for each that holds no text. `taken`: the same ones without their pictures."""
    return "\n".join(map(_words, elements, taken))


def _words(element: Mapping[str, object], taken: object) -> str:
    """One element; an object that was nothing but a picture was taken as the words for it."""
    if isinstance(taken, str):
        return taken
    kind = str(element["type"])
    content = element.get(kind)
    if kind == "image_url" and isinstance(content, Mapping):
        content = content.get("url")
    if kind == "image":
        return json.dumps(taken, ensure_ascii=False, default=str)
    if not isinstance(content, str) or (not content and kind != "text"):
        return f"[an empty {kind.partition('_')[0]} element]"
    match kind:
        case "text":
            return str(taken["text"]) if isinstance(taken, Mapping) else content
        case "file_url":
            return f"[file {_file_name(element)}: {content[:MAX_ADDRESS]}]"
        case "file_base64":
            return f"[file {_file_name(element)}, {len(content) * 3 // 4:,} bytes, not shown]"
        case _:
            return "[an image with an address that cannot be used]"


def _file_name(element: Mapping[str, object]) -> str:
    name = element.get("file_name")
    return name[:200] if isinstance(name, str) and name else "without a name"
