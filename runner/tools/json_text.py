"""The beginning and the end of a value's JSON text, without building the whole of it (D4).

Results can have millions of characters. Both walks stop as soon as they have enough, so their cost is that of what is
kept. What is no JSON becomes a string: floats that are not finite, bytes, unknown types, levels beyond the 64th.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence

MAX_DEPTH = 64
_TOO_DEEP = '"[nested deeper than 64 levels]"'
_MEASURED_NODES = 2_000_000


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
    """About how many characters the JSON text has, and whether that is only a lower bound (two million nodes)."""
    total = nodes = 0
    open_levels: list[Iterator[object]] = [iter((value,))]
    while open_levels and nodes < _MEASURED_NODES:
        item = next(open_levels[-1], _END)
        if item is _END:
            open_levels.pop()
            continue
        nodes += 1
        total += _own_length(item)
        if isinstance(item, dict | list | tuple) and len(open_levels) <= MAX_DEPTH:
            parts: Iterable[object] = item.values() if isinstance(item, dict) else item
            open_levels.append(iter(parts))
    return total, bool(open_levels)


_END = object()


def _own_length(item: object) -> int:
    """The characters of a value without those of its parts."""
    if isinstance(item, str):
        return len(item) + 2
    if isinstance(item, dict):
        return 1 + max(1, len(item)) + sum(len(name) + 3 for name in item if isinstance(name, str))
    if isinstance(item, list | tuple):
        return 1 + max(1, len(item))
    return len(_scalar(item))


def weighs(value: object, limit: int) -> bool:
    """Whether a value has more than about `limit` characters and items; stops counting there."""
    total = 0
    stack: list[object] = [value]
    while stack and total <= limit:
        item = stack.pop()
        total += 1
        if isinstance(item, str | bytes):
            total += len(item)
        elif isinstance(item, dict | list | tuple):
            total += len(item)
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
