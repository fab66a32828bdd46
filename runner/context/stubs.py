"""Making single units smaller without breaking them (F3, F4)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from runner.context.clipping import LEAST_TEXT, clip, clip_tokens
from runner.context.tokens import MESSAGE_TOKENS, Prices
from runner.conversation.units import AssistantTurn, Part, Text, ToolCall, ToolImage, ToolResult, Unit, UserTurn

LARGE: Final = 1_000
"""A tool result above this many characters is worth a stub."""

STUB: Final = 300
"""Characters a stub keeps, its note included."""

PICTURE_GONE: Final = "[This picture is no longer shown.]"
"""Stands where an older picture of a tool stood."""


def stub(unit: Unit) -> Unit:
    """The unit with short stubs for large results and pictures of tools; the same object when nothing is to gain."""
    if isinstance(unit, UserTurn):
        return without_pictures(unit)
    if all(len(result.text) <= LARGE for result in unit.results):
        return unit
    return unit.with_results(tuple(_stub_result(result) for result in unit.results))


def without_pictures(turn: UserTurn) -> UserTurn:
    """The turn with words for the pictures of tools; the same object when there are none."""
    if not any(isinstance(part, ToolImage) for part in turn.parts):
        return turn
    return replace(turn, parts=tuple(Text(PICTURE_GONE) if isinstance(p, ToolImage) else p for p in turn.parts))


def _stub_result(result: ToolResult) -> ToolResult:
    if len(result.text) <= LARGE:
        return result
    return replace(result, text=clip(result.text, STUB))


def clip_results(turn: AssistantTurn, tokens: int, prices: Prices) -> AssistantTurn | None:
    """The turn with its results cut so that it costs at most `tokens`; None when that cannot be.

    Small results stay whole; the large ones share what is left. Arguments are shortened only where results alone do
    not suffice, and stay valid JSON.
    """
    fixed = prices.unit(turn.with_results(tuple(replace(result, text="") for result in turn.results)))
    if fixed > tokens // 2:
        turn = replace(turn, calls=tuple(map(_short_arguments, turn.calls)))
        fixed = prices.unit(turn.with_results(tuple(replace(result, text="") for result in turn.results)))
    share = _level([prices.text(result.text) for result in turn.results], tokens - fixed)
    cut = turn.with_results(
        tuple(replace(result, text=clip_tokens(result.text, share, prices.text)) for result in turn.results)
    )
    return cut if prices.unit(cut) <= tokens else None


def _level(sizes: list[int], room: int) -> int:
    """The height at which cutting every size makes their sum fit `room`."""
    left, open_sizes = room, sorted(sizes)
    while open_sizes and open_sizes[0] * len(open_sizes) <= left:
        left -= open_sizes.pop(0)
    return max(0, left // len(open_sizes)) if open_sizes else max(sizes, default=0)


def _short_arguments(call: ToolCall) -> ToolCall:
    if len(call.arguments) <= LARGE:
        return call
    loaded = json.loads(call.arguments)
    short = {name: clip(value, STUB) if isinstance(value, str) else value for name, value in loaded.items()}
    text = json.dumps(short, ensure_ascii=False)
    if len(text) > 4 * LARGE:
        text = json.dumps({"omitted": f"{len(call.arguments)} characters of arguments"})
    return replace(call, arguments=text)


def clip_user(turn: UserTurn, tokens: int, prices: Prices) -> UserTurn | None:
    """The turn cut visibly to at most `tokens`; None when pictures alone leave no room for words.

    The last text part is what the person wrote now and is cut last; parts before it (knowledge, older rows) go first.
    """
    texts = [part for part in turn.parts if isinstance(part, Text)]
    others = sum(prices.part(part) for part in turn.parts if not isinstance(part, Text))
    room = tokens - others - int(MESSAGE_TOKENS * prices.scale + 1)
    if room < LEAST_TEXT and texts:
        return None
    cut: dict[int, Text] = {}
    for part in reversed(texts):
        shorter = Text(clip_tokens(part.text, room, prices.text)) if room >= LEAST_TEXT else Text("[…]")
        cut[id(part)] = shorter
        room = max(0, room - prices.part(shorter))
    result = replace(turn, parts=tuple(_swap(part, cut) for part in turn.parts))
    return result if prices.unit(result) <= tokens else None


def _swap(part: Part, cut: dict[int, Text]) -> Part:
    return cut.get(id(part), part)
