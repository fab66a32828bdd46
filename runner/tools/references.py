"""Explicit `path` and `url` fields of a large result: what the model needs to get at the rest (D4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import regex

from runner.conversation.cut import sendable
from runner.guards import defang
from runner.tools.json_text import MAX_DEPTH

_NAME = regex.compile(r"(?:.*_)?(?:path|url)", regex.IGNORECASE | regex.DOTALL)
_IN_TEXT = regex.compile(r'"((?:\w{1,40}_)?(?:path|url))"\s{0,8}:\s{0,8}"((?:[^"\\\n]|\\.){1,2048})"', regex.IGNORECASE)
_VALUE_CHARACTERS = 2_048
_MAX_FOUND = 200_000
_KEY_CHARACTERS = 80
_TOTAL_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class References:
    """`kept` maps a field's place (`files[0].path`) to its value; `more` counts the ones without room."""

    kept: Mapping[str, str] = field(default_factory=dict)
    more: int = 0

    def block(self) -> str:
        """The lines that stand at the end of a cut result; empty without references."""
        if not self.kept and not self.more:
            return ""
        return _block(dict(self.kept), self.more)


def collect(value: object, room: int) -> References:
    """The distinct references of a value whose `block()` fits `room` characters; the rest is counted. Linear time."""
    kept: dict[str, str] = {}
    seen: set[str] = set()
    more = 0
    left = min(room, _TOTAL_CHARACTERS) - len(_block({}, 10**7))
    for place, reference in _found(value):
        if reference in seen:
            continue
        seen.add(reference)
        place, shown = defang(sendable(place)), defang(sendable(reference))
        cost = len(json.dumps({place: shown}, ensure_ascii=False))
        if len(reference) <= _VALUE_CHARACTERS and cost <= left and place not in kept:
            kept[place] = shown
            left -= cost
        else:
            more += 1
    return References(kept, more) if left >= 0 or kept else References({}, 0)


def _block(kept: dict[str, str], more: int) -> str:
    listed = json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else ""
    rest = f"{' and ' if kept else ''}{more:,} more" if more else ""
    return f"\n[references in the full result: {listed}{rest}]"


def _found(value: object) -> Iterator[tuple[str, str]]:
    """Place and value of each reference, in the order of the result."""
    return islice(_below("", "", value, 0), _MAX_FOUND)


def _below(place: str, name: str, item: object, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(item, str):
        if item and _NAME.fullmatch(name):
            yield place, item
        elif item[:1] in ("{", "[") or name == "text":
            yield from _in_text(item)
    elif depth <= MAX_DEPTH:
        for where, key, part in _parts(place, name, item):
            if isinstance(part, str | dict | list | tuple):
                yield from _below(where, key, part, depth + 1)


def _parts(place: str, name: str, item: object) -> Iterator[tuple[str, str, object]]:
    if isinstance(item, dict):
        for key, part in item.items():
            key = str(key)[:_KEY_CHARACTERS]
            yield f"{place}.{key}" if place else key, key, part
    elif isinstance(item, list | tuple):
        for at, part in enumerate(item):
            yield f"{place}[{at}]", name, part


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """References of JSON that came as text, as MCP servers send it; the place is the name with a number."""
    for number, found in enumerate(_IN_TEXT.finditer(text)):
        try:
            yield f"{found[1]}#{number}", json.loads(f'"{found[2]}"', strict=False)
        except ValueError:
            continue
