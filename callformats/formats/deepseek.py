"""DeepSeek R1, V3 and V3.1: markers with wide bars, JSON with or without a fence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from callformats.block import (
    DECLINED,
    UNFINISHED,
    Block,
    Candidate,
    Format,
    Outcome,
    could_begin,
    literal_at,
    unreadable,
)
from callformats.json_value import Json
from callformats.loose_json import State, parse_before
from callformats.scan import any_of, next_match, skip_space
from callformats.shapes import dumps, of_value, past_value


def _both(name: str) -> tuple[str, str]:
    """A marker as DeepSeek spells it, and with plain bars, as some servers hand it on."""
    return f"<｜{name}｜>", f"<|{name}|>"


_SECTION = _both("tool▁calls▁begin")
_SECTION_END = _both("tool▁calls▁end")
_CALL = _both("tool▁call▁begin")
_CALL_END = _both("tool▁call▁end")
_SEPARATOR = _both("tool▁sep")
_OPENS = (*_SECTION, *_CALL)
_ENDS = (*_SECTION_END, *_both("end▁of▁sentence"))
_NAME = re.compile(r"\s{0,8}([^\s<>{}`]{1,128})")
_NEXT_MARKER = any_of((*_CALL_END, *_SECTION_END, *_CALL))


def _read(text: str, at: int, complete: bool) -> Outcome:
    section = literal_at(text, at, _SECTION)
    here = skip_space(text, at + len(section)) if section else at
    found: list[Candidate] = []
    end = here
    while True:
        here = skip_space(text, here)
        closer = literal_at(text, here, _ENDS)
        if closer is not None:
            return Block(here + len(closer), tuple(found), final=section is not None)
        opener = literal_at(text, here, _CALL)
        if opener is None and section is not None and not found and _without_opener(text, here):
            opener = ""
        if opener is None:
            if not complete and (here >= len(text) or could_begin(text, here, (*_CALL, *_ENDS))):
                return UNFINISHED
            return Block(end, tuple(found)) if found else _rubbish(text, here, complete, section)
        one = _one_call(text, here + len(opener), complete)
        if one is None:
            return UNFINISHED
        candidate, here = one
        end = here
        found.append(candidate)


def _without_opener(text: str, here: int) -> bool:
    """Whether a section goes on with a name and a separator: the call's own opener is missing."""
    name = _NAME.match(text, here)
    return name is not None and literal_at(text, name.end(), _SEPARATOR) is not None


def _rubbish(text: str, here: int, complete: bool, section: str | None) -> Outcome:
    """A section that holds no call: hidden up to its end."""
    if section is None:
        return DECLINED
    marker = next_match(_NEXT_MARKER, text, here)
    if marker is None:
        return Block(len(text), (Candidate("", raw=text[here:], broken=True),)) if complete else UNFINISHED
    return Block(marker.end(), (Candidate("", raw=text[here : marker.start()], broken=True),))


def _one_call(text: str, start: int, complete: bool) -> tuple[Candidate, int] | None:
    """The call behind its opener and where it ends; None when more text is needed."""
    name = _NAME.match(text, start)
    here = name.end() if name else start
    separator = literal_at(text, here, _SEPARATOR)
    if separator is None:
        if not complete and (here >= len(text) or could_begin(text, here, _SEPARATOR)):
            return None
        return _broken_call(text, start, complete)
    here += len(separator)
    written = name[1] if name else ""
    if written == "function":
        second = _NAME.match(text, here)
        if second is None or second.end() >= len(text):
            return None if not complete else _broken_call(text, start, complete)
        written, here = second[1], second.end()
    fenced = _fence(text, here)
    if fenced is None and not complete and len(text) - here < 16:
        return None
    return _arguments(text, start, fenced if fenced is not None else here, complete, written, fenced is not None)


_FENCE = re.compile(r"\s{0,8}```(?:json)?\s{0,8}(?=\S)")


def _fence(text: str, here: int) -> int | None:
    match = _FENCE.match(text, here)
    return match.end() if match else None


def _arguments(
    text: str, start: int, here: int, complete: bool, name: str, fenced: bool
) -> tuple[Candidate, int] | None:
    parsed = parse_before(text, here, ("```", *_CALL_END, *_SECTION_END))
    if parsed.state in (State.OPEN, State.CUT) and not complete:
        return None
    if parsed.state is State.BROKEN:
        return _broken_call(text, start, complete)
    parsed = past_value(text, parsed)
    end = parsed.end
    closed_fence = text.startswith("```", end)
    end = skip_space(text, end + 3) if closed_fence else end
    closer = literal_at(text, end, _CALL_END)
    if closer is None and not complete and (end >= len(text) or could_begin(text, end, ("```", *_CALL_END))):
        return None
    broken = fenced != closed_fence and end < len(text)
    candidate = of_value(name, parsed, text[start:end], closed=closer is not None)
    return replace(candidate, broken=broken), end + len(closer) if closer else end


def _broken_call(text: str, start: int, complete: bool) -> tuple[Candidate, int] | None:
    return unreadable(text, start, complete, _NEXT_MARKER, _CALL_END)


def _write_r1(name: str, arguments: Mapping[str, Json]) -> str:
    body = f"{_CALL[0]}function{_SEPARATOR[0]}{name}\n```json\n{dumps(arguments)}\n```{_CALL_END[0]}"
    return f"{_SECTION[0]}{body}{_SECTION_END[0]}"


def _write_v31(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{_SECTION[0]}{_CALL[0]}{name}{_SEPARATOR[0]}{dumps(arguments)}{_CALL_END[0]}{_SECTION_END[0]}"


_CLOSES = (*_SECTION_END, *_CALL_END)

FORMATS = (
    Format(
        "deepseek-r1",
        _read,
        _write_r1,
        _OPENS,
        _CLOSES,
        _SECTION_END[:1],
        inner=tuple(f"function{separator}" for separator in _SEPARATOR),
        aliases=("deepseek-v3", "deepseekr1"),
    ),
    Format("deepseek-v31", _read, _write_v31, _OPENS, _CLOSES, _SECTION_END[:1], inner=_SEPARATOR),
)
