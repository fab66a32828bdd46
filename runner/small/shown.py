"""Which tools a weak model sees in full, and how it gets at the others (S2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from runner.conversation.cut import head
from runner.conversation.request import ToolSpec
from runner.guards import defang
from runner.host.events import Json
from runner.tools.ranking import NAME_SCORE, rank_tools, scores

LOAD: Final = "load_tool"
LOAD_SPEC: Final = ToolSpec(
    LOAD,
    "Shows you a tool of the list of further tools in full, so that you can call it.",
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)
INDEX_INTRO: Final = f"Further tools; call {LOAD} with a name before you use one:"
KEY: Final = "small-tools"
"""Name among the notes of the conversation's checkpoint: the names of the tools that are shown."""

_LINE_CHARACTERS = 100
_MOST = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """`tools` stand in full, the best first; `index` is a block of one line for each of the others, or None."""

    tools: tuple[ToolSpec, ...]
    index: str | None = None


class Places:
    """The tools that a conversation showed last, in their order: those that stay are what a cache can serve (L8).

    `stored` is what earlier runs noted, of any shape; `note` keeps a new value with the conversation.
    """

    def __init__(self, stored: Json = None, note: Callable[[Json], None] = lambda _value: None) -> None:
        names = stored if isinstance(stored, list) else []
        self.names = [name for name in names[:_MOST] if isinstance(name, str)]
        self._note = note

    def keep(self, names: Sequence[str], *, lasting: bool) -> None:
        """These are shown now. `lasting`: later runs begin with them."""
        news = list(names) != self.names
        self.names = list(names)
        if news and lasting:
            self._note([*names])


def choose(
    tools: Sequence[ToolSpec],
    query: str,
    *,
    most: int,
    loaded: Sequence[str],
    recent: Sequence[str],
    before: Sequence[str] = (),
) -> Shown:
    """At most `most` tools in full; those that were loaded come first. Ranked afresh each step.

    `before` were shown so far: another tool takes the place of one of them where it is the most like the request, or
    more like it by a word of its name.
    """
    first = [tool for name in reversed(loaded) for tool in tools if tool.name == name][:most]
    others = [tool for tool in tools if tool not in first]
    ranked = rank_tools(others, query, max=most - len(first), recent=recent)
    wanted = [tool.name for tool in (*first, *ranked)]
    kept = [name for name in before if any(tool.name == name for tool in tools)]
    if len(wanted) < len(tools) and len(kept) == len(wanted):
        wanted = _with_few_changes(tools, wanted, kept, query, recent, len(first))
    by_name = {tool.name: tool for tool in tools}
    shown = tuple(rank_tools([by_name[name] for name in wanted], query, max=len(wanted)))
    rest = [tool for tool in tools if tool.name not in wanted]
    return Shown(shown, defang("\n".join([INDEX_INTRO, *map(_line, rest)])) if rest else None)


def _with_few_changes(
    tools: Sequence[ToolSpec],
    wanted: Sequence[str],
    kept: Sequence[str],
    query: str,
    recent: Sequence[str],
    loaded: int,
) -> list[str]:
    """`kept` with those of `wanted` that have to be shown in the place of the least like the request."""
    likeness = scores(tools, query, recent)
    stay = list(kept)
    for place, name in enumerate(wanted):
        weakest = min((one for one in stay if one not in wanted), key=likeness.__getitem__, default=None)
        if name in stay or weakest is None:
            continue
        more = likeness[name] - likeness[weakest]
        if place < loaded or more >= (1 if place == loaded else NAME_SCORE):
            stay.remove(weakest)
            stay.append(name)
    return sorted(stay, key=lambda name: -likeness[name])


def _line(tool: ToolSpec) -> str:
    words = " ".join(tool.description.split())
    return f"- {tool.name}: {head(words, _LINE_CHARACTERS)}" if words else f"- {tool.name}"
