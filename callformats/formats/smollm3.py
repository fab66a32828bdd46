"""SmolLM3: Python between `<code>` and `</code>`. Since HTML has that tag, too, it counts as no marker."""

from __future__ import annotations

import re
from collections.abc import Mapping

from callformats.block import DECLINED, UNFINISHED, Block, Format, GaveUp, Names, Outcome, could_begin
from callformats.formats.pythonic import marked, written
from callformats.json_value import Json

_OPEN, _CLOSE = "<code>", "</code>"
_SHOWN = re.compile(r"\s{0,8}(?:print\(\s{0,4}[^\W\d]\w{0,40}\s{0,4}\)\s{0,8})?</code>")
"""Behind the calls: what they gave is printed."""

_LOOK_AHEAD = 100
_CHARGE = 2_000
_read_code = marked((_OPEN,), (_CLOSE,))


def _read(text: str, at: int, complete: bool, names: Names) -> Outcome:
    if not text.startswith(_OPEN, at):
        return UNFINISHED if not complete and at < len(text) and could_begin(text, at, (_OPEN,)) else DECLINED
    outcome = _read_code(text, at, complete)
    if outcome is UNFINISHED:
        return UNFINISHED
    if not isinstance(outcome, Block) or not all(names.spells(one.name) for one in outcome.candidates):
        return GaveUp(at + _CHARGE)
    if text.endswith(_CLOSE, at, outcome.end):
        return outcome
    if not complete and len(text) - outcome.end < _LOOK_AHEAD:
        return UNFINISHED
    shown = _SHOWN.match(text, outcome.end)
    return Block(shown.end(), outcome.candidates) if shown else outcome


def _write(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{_OPEN}\n{written(name, arguments)}\n{_CLOSE}"


FORMATS = (Format("smollm3-code", write=_write, stops=(_CLOSE,), aliases=("smollm3",), plain=_read, begins="<"),)
