"""Which tools a weak model sees in full, and how it gets at the others (S2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.conversation.cut import head
from runner.conversation.request import ToolSpec
from runner.guards import defang
from runner.tools import rank_tools

LOAD: Final = "load_tool"
LOAD_SPEC: Final = ToolSpec(
    LOAD,
    "Shows you a tool of the list of further tools in full, so that you can call it.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
INDEX_INTRO: Final = f"Further tools; call {LOAD} with a name before you use one:"
_LINE_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Shown:
    """`tools` stand in full, the best first; `index` is a block of one line for each of the others, or None."""

    tools: tuple[ToolSpec, ...]
    index: str | None = None


def choose(tools: Sequence[ToolSpec], query: str, *, most: int, loaded: Sequence[str], recent: Sequence[str]) -> Shown:
    """At most `most` tools in full; those that were loaded come first. Ranked afresh each step."""
    first = [tool for name in reversed(loaded) for tool in tools if tool.name == name][:most]
    others = [tool for tool in tools if tool not in first]
    ranked = rank_tools(others, query, max=most - len(first), recent=recent)
    shown = (*rank_tools(first, query, max=most), *ranked)
    names = {tool.name for tool in shown}
    rest = [tool for tool in tools if tool.name not in names]
    if not rest:
        return Shown(shown)
    return Shown(shown, defang("\n".join([INDEX_INTRO, *map(_line, rest)])))


def _line(tool: ToolSpec) -> str:
    words = " ".join(tool.description.split())
    return f"- {tool.name}: {head(words, _LINE_CHARACTERS)}" if words else f"- {tool.name}"
