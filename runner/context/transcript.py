"""Units as plain text for a summariser: tool turns as words, pictures and raw data named instead of shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from runner.context.clipping import LEAST_TEXT, clip, clip_tokens
from runner.context.tokens import Prices
from runner.conversation.units import Reference, Text, ToolCall, ToolResult, Unit, UserTurn
from runner.guards import lines_beginning, quoted, unframe

RESULT: Final = 1_500
"""Characters of one tool result that a summariser sees."""

ARGUMENTS: Final = 600
"""Characters of one call's arguments that a summariser sees."""

_DATA = re.compile(r"(?:data:[\w.+/-]*;base64,)?[A-Za-z0-9+/_-]{300,}={0,2}")
TAGS: Final = re.compile(r"<\s{0,8}/?\s{0,8}conversation[_\s-]{0,4}(?:summary|part)(?:[^>]{0,200}>)?", re.IGNORECASE)
"""Our own tags, in whatever way somebody wrote them."""


_LABELS = lines_beginning(
    r"(?:user|assistant|system)\s{0,4}[:：﹕︓∶꞉]|assistant called\b|result of [^\n]{1,80}[:：﹕︓∶꞉]"
)
"""A line that begins like one of ours is shown as quoted: nobody says in a text what another did (I6)."""


def harmless(text: str) -> str:
    """The text without tags that would open or close a block of ours."""
    return TAGS.sub("[tag]", text)


def without_data(text: str) -> str:
    """Long unbroken runs (base64 and the like) become a note of their length."""
    return _DATA.sub(lambda run: f"[{len(run.group())} characters of data]", text)


def render(unit: Unit) -> str:
    """One unit as text, results and arguments bounded; other texts whole."""
    if isinstance(unit, UserTurn):
        shown = [part for part in unit.parts if not isinstance(part, Reference)]
        parts = [part.text if isinstance(part, Text) else "[picture or file]" for part in shown]
        return harmless(without_data("User: " + quoted("\n".join(parts), _LABELS)))
    said = [f"Assistant: {quoted(unit.text, _LABELS)}"] if unit.text.strip() else []
    told = [_exchange(call, result) for call, result in zip(unit.calls, unit.results, strict=True)]
    return harmless("\n".join((*map(without_data, said), *told)))


def _exchange(call: ToolCall, result: ToolResult) -> str:
    arguments = clip(without_data(call.arguments), ARGUMENTS)
    told = quoted(clip(without_data(unframe(result.text)), RESULT), _LABELS)
    return f"Assistant called {call.name} with {arguments}\nResult of {call.name}: {told}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`text`: the units that fit, oldest first; `told`: these units; `left`: their neighbours without room."""

    text: str
    told: tuple[Unit, ...]
    left: tuple[Unit, ...]
    tokens: int


def excerpt(units: tuple[Unit, ...], room: int, prices: Prices, *, newest: bool = False) -> Excerpt:
    """The oldest units (or the newest) that fit `room` Host tokens, as text. One unit above half of it is cut to that
    half, never to less than says something; `pieces` makes of a long unit some that need no cut.
    """
    lines: list[str] = []
    left = room
    for unit in reversed(units) if newest else units:
        line = clip_tokens(render(unit), max(LEAST_TEXT, room // 2), prices.text)
        cost = prices.text(line) + 2
        if cost > left:
            break
        left -= cost
        lines.append(line)
    split = len(units) - len(lines) if newest else len(lines)
    older, newer = units[:split], units[split:]
    told, untold = (newer, older) if newest else (older, newer)
    return Excerpt("\n\n".join(lines[::-1] if newest else lines), told, untold, room - left)
