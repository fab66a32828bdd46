"""Which tools a small model is shown for a request (S2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from callformats import Offered, spec_of
from runner.conversation.cut import head
from runner.conversation.request import ToolSpec
from runner.tools.compact import compact_schema

TOOL_DESCRIPTION_CHARACTERS = 400
_QUERY_CHARACTERS = 20_000
_KNOWN = 600
"""So many descriptions are kept as words; a long one takes some 20 KB."""
NAME_SCORE, _DESCRIPTION_SCORE, _RECENT_SCORE = 3, 1, 2

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Scripts written without spaces: Han, kana, Hangul (whose words carry particles), Thai.
_UNSPACED = r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<word>[^\W_{_UNSPACED}]+)")


def rank_tools(tools: Sequence[Offered], query: str, *, max: int = 8, recent: Sequence[str] = ()) -> list[ToolSpec]:
    """At most `max` tools, the ones most like the request first; ties and short lists keep their order (S2).

    Every tool comes back with its description cut to 400 characters and a compact schema.
    """
    chosen = list(map(spec_of, tools))
    if len(chosen) > max:
        likeness = scores(chosen, query, recent)
        chosen.sort(key=lambda tool: -likeness[tool.name])
        del chosen[max if max > 0 else 0 :]
    return [_short(tool) for tool in chosen]


def scores(tools: Sequence[ToolSpec], query: str, recent: Sequence[str] = ()) -> dict[str, int]:
    """How like the request each tool is, by its name (S2)."""
    asked = frozenset(words(query[:_QUERY_CHARACTERS]))
    begins = frozenset(word[:4] for word in asked if len(word) > 3)
    return {tool.name: _score(tool, asked, begins, recent) for tool in tools}


def know(tools: Iterable[ToolSpec]) -> None:
    """Split the descriptions of tools, so that ranking them costs next to nothing. A long one takes a millisecond the
    first time: call it in a thread (L12)."""
    for tool in tools:
        _words_of(tool.description)


@lru_cache(maxsize=_KNOWN)
def _words_of(description: str) -> frozenset[str]:
    return frozenset(words(description))


def words(text: str) -> Iterator[str]:
    """Lower-case words; runs of a script without spaces give their pairs of characters (S2)."""
    for run in _RUN.finditer(_HUMP.sub(" ", text)):
        unspaced = run["unspaced"]
        if unspaced is None:
            yield run["word"].lower()
        elif len(unspaced) == 1:
            yield unspaced
        else:
            yield from (unspaced[at : at + 2] for at in range(len(unspaced) - 1))


def _score(tool: ToolSpec, asked: frozenset[str], begins: frozenset[str], recent: Sequence[str]) -> int:
    name = set(words(tool.name))
    in_name = sum(1 for word in name if word in asked or word[:4] in begins)
    in_description = len(_words_of(tool.description) & asked)
    return NAME_SCORE * in_name + _DESCRIPTION_SCORE * in_description + (_RECENT_SCORE if tool.name in recent else 0)


def _short(tool: ToolSpec) -> ToolSpec:
    return replace(
        tool,
        description=head(tool.description, TOOL_DESCRIPTION_CHARACTERS),
        parameters=compact_schema(tool.parameters),
    )
