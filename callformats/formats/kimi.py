"""Kimi K2 and K3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from callformats.block import DECLINED, UNFINISHED, Block, Candidate, Format, Outcome, could_begin, unreadable
from callformats.json_value import Json
from callformats.loose_json import State, parse, parse_before
from callformats.scan import any_of, skip_space
from callformats.shapes import dumps, of_value, past_value, put

_SECTION = "<|tool_calls_section_begin|>"
_SECTION_END = "<|tool_calls_section_end|>"
_CALL = "<|tool_call_begin|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_CALL_END = "<|tool_call_end|>"
_HEAD = re.compile(r"\s{0,8}([\w./:-]{1,160})\s{0,8}")
_CALL_ID = re.compile(r"(?:functions\.)?(.+?)(?::\d{1,6})?")
_NEXT_MARKER = any_of((_CALL_END, _SECTION_END))


def _read_k2(text: str, at: int, complete: bool) -> Outcome:
    here = skip_space(text, at + len(_SECTION)) if text.startswith(_SECTION, at) else at
    found: list[Candidate] = []
    end = here
    while True:
        here = skip_space(text, here)
        if text.startswith(_SECTION_END, here):
            return Block(here + len(_SECTION_END), tuple(found))
        if not text.startswith(_CALL, here):
            if not complete and (here >= len(text) or could_begin(text, here, (_CALL, _SECTION_END))):
                return UNFINISHED
            return Block(end, tuple(found)) if found or end > at else DECLINED
        one = _k2_call(text, here + len(_CALL), complete)
        if one is None:
            return UNFINISHED
        candidate, here = one
        end = here
        found.append(candidate)


def _k2_call(text: str, start: int, complete: bool) -> tuple[Candidate, int] | None:
    head = _HEAD.match(text, start)
    here = head.end() if head else start
    if head is None or not text.startswith(_ARGUMENTS, here):
        if not complete and (here >= len(text) or could_begin(text, here, (_ARGUMENTS,))):
            return None
        return _broken(text, start, complete)
    named = _CALL_ID.fullmatch(head[1])
    parsed = parse_before(text, here + len(_ARGUMENTS), (_CALL_END, _SECTION_END))
    if parsed.state in (State.OPEN, State.CUT) and not complete:
        return None
    if parsed.state is State.BROKEN or named is None:
        return _broken(text, start, complete)
    parsed = past_value(text, parsed)
    end = parsed.end
    closed = text.startswith(_CALL_END, end)
    if not closed and not complete and (end >= len(text) or could_begin(text, end, (_CALL_END,))):
        return None
    candidate = of_value(named[1], parsed, text[start : parsed.end], closed=closed)
    return replace(candidate, id=head[1]), end + len(_CALL_END) if closed else parsed.end


def _broken(text: str, start: int, complete: bool) -> tuple[Candidate, int] | None:
    return unreadable(text, start, complete, _NEXT_MARKER, (_CALL_END,))


def _write_k2(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{_SECTION}{_CALL}functions.{name}:0{_ARGUMENTS}{dumps(arguments)}{_CALL_END}{_SECTION_END}"


_TOOLS = "<|open|>tools<|sep|>"
_TOOLS_END = "<|close|>tools<|sep|>"
_K3_CALL = re.compile(r"<\|open\|>call tool=\"([^\"\n]{1,128})\"[^<\n]{0,80}<\|sep\|>")
_K3_CALL_START = '<|open|>call tool="'
_K3_CALL_END = "<|close|>call<|sep|>"
_K3_ARGUMENT = re.compile(r"<\|open\|>argument key=\"([^\"\n]{1,128})\"(?: type=\"(\w{1,16})\")?[^<\n]{0,80}<\|sep\|>")
_K3_ARGUMENT_END = "<|close|>argument<|sep|>"
_K3_TAG = 400


def _read_k3(text: str, at: int, complete: bool) -> Outcome:
    here = at + len(_TOOLS) if text.startswith(_TOOLS, at) else at
    found: list[Candidate] = []
    end = here
    while True:
        here = skip_space(text, here)
        if text.startswith(_TOOLS_END, here):
            return Block(here + len(_TOOLS_END), tuple(found))
        head = _K3_CALL.match(text, here)
        if head is None:
            growing = here >= len(text) or could_begin(text, here, (_K3_CALL_START, _TOOLS_END))
            growing = growing or (text.startswith(_K3_CALL_START, here) and len(text) - here < _K3_TAG)
            if growing and not complete:
                return UNFINISHED
            return Block(end, tuple(found)) if found or end > at else DECLINED
        one = _k3_call(text, head, complete)
        if one is None:
            return UNFINISHED
        candidate, here = one
        end = here
        found.append(candidate)


def _k3_call(text: str, head: re.Match[str], complete: bool) -> tuple[Candidate, int] | None:
    values: dict[str, Json] = {}
    doubled: str | None = None
    here = head.end()
    while True:
        here = skip_space(text, here)
        if text.startswith(_K3_CALL_END, here):
            end = here + len(_K3_CALL_END)
            return Candidate(head[1], values, text[head.start() : end], typed=False, doubled=doubled), end
        argument = _K3_ARGUMENT.match(text, here)
        if argument is None:
            if not complete and len(text) - here < _K3_TAG:
                return None
            broken = not complete or here < len(text)
            return Candidate(head[1], values, text[head.start() :], typed=False, mended=True, broken=broken), len(text)
        close = text.find(_K3_ARGUMENT_END, argument.end())
        if close < 0:
            if not complete:
                return None
            return Candidate(head[1], values, text[head.start() :], typed=False, cut=True), len(text)
        value = _k3_value(text[argument.end() : close], argument[2])
        doubled = put(values, argument[1], value) or doubled
        here = close + len(_K3_ARGUMENT_END)


def _k3_value(written: str, type_name: str | None) -> Json:
    if type_name in (None, "string"):
        return written
    parsed = parse(written + "\n")
    return parsed.value if parsed.state is State.WHOLE and parsed.sure else written


_K3_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def _write_k3(name: str, arguments: Mapping[str, Json]) -> str:
    lines = [f'{_TOOLS}<|open|>call tool="{name}" index="1"<|sep|>']
    for key, value in arguments.items():
        kind = next((label for known, label in _K3_TYPES if isinstance(value, known)), "null")
        text = value if isinstance(value, str) else dumps(value)
        lines.append(f'<|open|>argument key="{key}" type="{kind}"<|sep|>{text}{_K3_ARGUMENT_END}')
    return "".join([*lines, _K3_CALL_END, _TOOLS_END])


FORMATS = (
    Format(
        "kimi-k2",
        _read_k2,
        _write_k2,
        (_SECTION, _CALL),
        (_SECTION_END, _CALL_END, _ARGUMENTS),
        (_SECTION_END,),
        aliases=("kimi",),
    ),
    Format(
        "kimi-k3",
        _read_k3,
        _write_k3,
        (_TOOLS, _K3_CALL_START),
        (_TOOLS_END, _K3_CALL_END, _K3_ARGUMENT_END),
        (_TOOLS_END,),
    ),
)
