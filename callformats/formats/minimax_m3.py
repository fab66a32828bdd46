"""MiniMax M3: tags named after the parameters, each with a token of its own in front."""

from __future__ import annotations

import re
from collections.abc import Mapping

from callformats.block import DECLINED, UNFINISHED, Block, Candidate, Format, Outcome
from callformats.json_value import Json
from callformats.scan import next_match
from callformats.shapes import dumps, put

_TOKEN = "]<]minimax[>["
_OPEN = _TOKEN + "<tool_call>"
_CLOSE = _TOKEN + "</tool_call>"
_INVOKE = re.compile(re.escape(_TOKEN) + r"<invoke name=\"([^\"<>\n]{1,128})\">")
_INVOKE_START = f'{_TOKEN}<invoke name="'
_INVOKE_END = _TOKEN + "</invoke>"
_TAG = re.compile(re.escape(_TOKEN) + r"<(/?)([^<>/\n]{1,128})>")
_DEPTH = 24


class _Ended(Exception):
    pass


class _Doubled(Exception):
    """`str()` is the key."""


def _read(text: str, at: int, complete: bool) -> Outcome:
    if not text.startswith(_OPEN, at):
        return DECLINED
    close = text.find(_CLOSE, at)
    if close < 0 and not complete:
        return UNFINISHED
    stop = close if close >= 0 else len(text)
    found: list[Candidate] = []
    here = at + len(_OPEN)
    while (head := next_match(_INVOKE, text, here, stop)) is not None:
        end = text.find(_INVOKE_END, head.end(), stop)
        limit = end if end >= 0 else stop
        raw = text[head.start() : limit]
        try:
            value = _members(text, head.end(), limit, 0)[0]
            found.append(Candidate(head[1], _object(value), raw, typed=False, mended=end < 0))
        except _Doubled as key:
            found.append(Candidate(head[1], {}, raw, doubled=str(key)))
        except _Ended:
            found.append(Candidate(head[1], {}, raw, cut=True))
        here = limit
    if not found:
        found.append(Candidate("", raw=text[at:stop], broken=True))
    return Block(stop + len(_CLOSE) if close >= 0 else stop, tuple(found))


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _members(text: str, at: int, stop: int, depth: int) -> tuple[Json, int]:
    """What stands between two tags: members, items, or plain text. Raises `_Ended` when a tag is never
    closed, `_Doubled` when a member has two values."""
    members: dict[str, Json] = {}
    items: list[Json] = []
    start = at
    while True:
        tag = next_match(_TAG, text, at, stop)
        if tag is None or tag[1]:
            end = tag.start() if tag else stop
            if members or items or depth == 0:
                return (items or members), end
            return text[start:end], end
        if depth > _DEPTH:
            raise _Ended
        value, end = _members(text, tag.end(), stop, depth + 1)
        closer = _TAG.match(text, end, stop)
        if closer is None or closer[2] != tag[2]:
            raise _Ended
        at = closer.end()
        if tag[2] == "item":
            items.append(_scalar(value))
        else:
            member = value if depth == 0 else _scalar(value)
            if put(members, tag[2], member) is not None:
                raise _Doubled(tag[2])


def _scalar(value: Json) -> Json:
    """Inside an object or a list nothing but the text says what a value is."""
    if not isinstance(value, str):
        return value
    if value in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[value]
    try:
        return int(value) if re.fullmatch(r"-?\d{1,18}", value) else float(value)
    except ValueError:
        return value


def _tagged(key: str, value: Json) -> str:
    return f"{_TOKEN}<{key}>{_inner(value)}{_TOKEN}</{key}>"


def _inner(value: Json) -> str:
    if isinstance(value, dict):
        return "".join(_tagged(key, item) for key, item in value.items())
    if isinstance(value, list):
        return "".join(_tagged("item", item) for item in value)
    return value if isinstance(value, str) else dumps(value)


def _write(name: str, arguments: Mapping[str, Json]) -> str:
    return f'{_OPEN}\n{_TOKEN}<invoke name="{name}">{_inner(dict(arguments))}{_INVOKE_END}\n{_CLOSE}'


FORMATS = (Format("minimax-m3", _read, _write, (_OPEN,), (_CLOSE, _INVOKE_END), (_CLOSE,), inner=(_INVOKE_START,)),)
