"""The beginning and the end of a value's JSON text, without building the whole of it (D4).

Results can have millions of characters. Both walks stop as soon as they have enough, so their cost is that of what is
kept. What is no JSON becomes a string: floats that are not finite, bytes, unknown types, levels beyond the 64th.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

MAX_DEPTH = 64
_TOO_DEEP = '"[nested deeper than 64 levels]"'
_MEASURED_NODES = 1_200_000


def beginning(value: object, size: int) -> tuple[str, bool]:
    """The first `size` characters (or a little more) of the JSON text, and whether that is all of it."""
    pieces: list[str] = []
    length = 0
    for piece in _forward(value, size, 0):
        if length > size:
            return "".join(pieces), False
        pieces.append(piece)
        length += len(piece)
    # A long string is walked cut; its piece is then longer than the size.
    return "".join(pieces), length <= size


def ending(value: object, size: int) -> str:
    """The last `size` characters (or a little more) of the JSON text."""
    pieces: list[str] = []
    length = 0
    for piece in _backward(value, size, 0):
        pieces.append(piece)
        length += len(piece)
        if length > size:
            break
    return "".join(reversed(pieces))


def measure(value: object) -> tuple[int, bool]:
    """About how many characters the JSON text has, and whether that is only a lower bound (1,200,000 nodes)."""
    total, nodes = 0, 1
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 2):
        deeper: list[object] = []
        for item in level:
            # Type identity, not isinstance: this loop runs a million times, and the wire knows no subclasses.
            kind = type(item)
            if kind is int or kind is float:
                total += len(repr(item)) + 1
            elif kind is str:
                total += len(item) + 3  # type: ignore[arg-type]  # it is a string
            elif isinstance(item, dict | list | tuple):
                total += 3 + (sum(map(_name_length, item)) if kind is dict else 0)
                nodes += len(item)
                if nodes > _MEASURED_NODES:
                    return total + nodes, True
                deeper.extend(item.values() if isinstance(item, dict) else item)
            else:
                total += 6
        if not deeper:
            break
        level = deeper
    return max(2, total - 1), False


def _name_length(name: object) -> int:
    return len(name) + 3 if isinstance(name, str) else 8


def weighs(value: object, limit: int) -> bool:
    """Whether a value has more than `limit` characters, an item counting as eight; stops counting there."""
    total = 0
    stack: list[object] = [value]
    while stack and total <= limit:
        item = stack.pop()
        if isinstance(item, str | bytes):
            total += len(item)
        elif isinstance(item, dict | list | tuple):
            total += 8 + 8 * len(item)
            if total <= limit:
                stack.extend(item.values() if isinstance(item, dict) else item)
    return total > limit


def _forward(value: object, size: int, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield _quoted(value[: size + 1]) if len(value) <= size else _quoted(value[: size + 1])[:-1]
    elif isinstance(value, dict | list | tuple) and depth > MAX_DEPTH:
        yield _TOO_DEEP
    elif isinstance(value, dict):
        yield "{"
        for number, (name, part) in enumerate(value.items()):
            yield f"{',' if number else ''}{_name(name)}:"
            yield from _forward(part, size, depth + 1)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for number, part in enumerate(value):
            if number:
                yield ","
            yield from _forward(part, size, depth + 1)
        yield "]"
    else:
        yield _scalar(value)


def _backward(value: object, size: int, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield _quoted(value) if len(value) <= size else _quoted(value[-size - 1 :])[1:]
    elif isinstance(value, dict | list | tuple) and depth > MAX_DEPTH:
        yield _TOO_DEEP
    elif isinstance(value, dict):
        yield "}"
        first = len(value) - 1
        for number, (name, part) in enumerate(reversed(value.items())):
            yield from _backward(part, size, depth + 1)
            yield f"{',' if number < first else ''}{_name(name)}:"
        yield "{"
    elif isinstance(value, list | tuple):
        yield "]"
        yield from _backward_items(value, size, depth)
        yield "["
    else:
        yield _scalar(value)


def _backward_items(items: Sequence[object], size: int, depth: int) -> Iterator[str]:
    for number, part in enumerate(reversed(items)):
        if number:
            yield ","
        yield from _backward(part, size, depth + 1)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _name(name: object) -> str:
    text = name if isinstance(name, str) else str(name)
    return _quoted(text if len(text) <= 1_000 else f"{text[:1_000]}…")


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() < 4_096 else '"[a number of thousands of digits]"'
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f'"{value}"'
    if isinstance(value, bytes | bytearray):
        return f'"[{len(value)} bytes]"'
    return _quoted(f"[a value of type {type(value).__name__}]")
