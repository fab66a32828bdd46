"""Explicit `path` and `url` fields of a large result: what the model needs to get at the rest (D4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import regex

from runner.conversation.cut import sendable
from runner.guards import defang
from runner.tools.json_text import MAX_DEPTH

_NAME = regex.compile(r"(?:.*_)?(?:path|url)", regex.IGNORECASE | regex.DOTALL)
_IN_TEXT = regex.compile(r'"((?:\w{1,40}_)?(?:path|url))"\s{0,8}:\s{0,8}"((?:[^"\\\n]|\\.){1,2048})"', regex.IGNORECASE)
_VALUE_CHARACTERS = 2_048
_MAX_NODES = 500_000
_KEY_CHARACTERS = 80
_TOTAL_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class References:
    """`kept` maps a field's place (`files[0].path`) to its value; `more` counts the ones without room.

    `all_seen` False: the result was too large to be looked through, so there may be more than `more` says.
    """

    kept: Mapping[str, str] = field(default_factory=dict)
    more: int = 0
    all_seen: bool = True

    def block(self) -> str:
        """The line that stands at the end of a cut result; empty without references."""
        if not self.kept and not self.more:
            return ""
        listed = _listed(self.kept) if self.kept else ""
        joint = " and " if self.kept and self.more else ""
        least = "" if self.all_seen else "at least "
        return f"{_OPENING}{listed}{joint}{f'{least}{self.more:,} more' if self.more else ''}]"


_OPENING = "\n[references in the full result: "
_ENDING_CHARACTERS = len(" and at least 1,000,000 more]")


def _listed(kept: Mapping[str, str]) -> str:
    return json.dumps(dict(kept), ensure_ascii=False, separators=(",", ":"))


def collect(value: object, room: int) -> References:
    """The distinct references of a value whose `block()` fits `room` characters; the rest is counted. Linear time.

    Long references (over 2,048 characters) are counted, never cut: half an address is of no use.
    """
    kept: dict[str, str] = {}
    seen: set[str] = set()
    more = 0
    left = min(room, _TOTAL_CHARACTERS) - len(_OPENING) - _ENDING_CHARACTERS
    if left < 0:
        return References()
    walk = _Walk()
    for place, reference in walk.below("", "", value, 0):
        if reference in seen:
            continue
        seen.add(reference)
        if len(reference) <= min(left, _VALUE_CHARACTERS) and place not in kept:
            entry = {defang(sendable(place)): defang(sendable(reference))}
            if (cost := len(_listed(entry))) <= left:
                kept |= entry
                left -= cost
                continue
        more += 1
    return References(kept, more, walk.complete)


class _Walk:
    """Place and value of each reference, in the order of the result, within a bounded number of nodes.

    Shared parts can make a small result endless, so the number is bounded and not only the depth.
    """

    def __init__(self) -> None:
        self._left = _MAX_NODES

    @property
    def complete(self) -> bool:
        return self._left > 0

    def below(self, place: str, name: str, item: object, depth: int) -> Iterator[tuple[str, str]]:
        self._left -= 1
        if isinstance(item, str):
            if item and _NAME.fullmatch(name):
                yield place, item
            elif item[:1] in ("{", "[") or name == "text":
                yield from _in_text(item)
        elif depth <= MAX_DEPTH:
            for where, key, part in _parts(place, name, item):
                if self._left <= 0:
                    return
                if isinstance(part, str | dict | list | tuple):
                    yield from self.below(where, key, part, depth + 1)


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
