"""Functionary 2: sender, recipient and content, each behind a token of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from callformats.block import DECLINED, UNFINISHED, Block, Format, Outcome
from callformats.json_value import Json
from callformats.scan import next_match
from callformats.shapes import dumps, of_body

_FROM = "<|from|>assistant"
_RECIPIENT = "<|recipient|>"
_CONTENT = "<|content|>"
_STOP = "<|stop|>"
_HEAD = re.compile(
    r"(?:<\|from\|>assistant\s{0,4})?<\|recipient\|>\s{0,4}(?P<name>[\w./:-]{1,128})\s{0,4}<\|content\|>\s{0,4}"
)
_HEAD_CHARACTERS = 200
_END = re.compile(r"<\|(?:stop|from)\|>")
_EVERYONE = "all"


def _read(text: str, at: int, complete: bool) -> Outcome:
    head = _HEAD.match(text, at)
    if head is None:
        growing = len(text) - at < _HEAD_CHARACTERS and _CONTENT not in text[at:]
        return UNFINISHED if growing and not complete else DECLINED
    if head["name"] == _EVERYONE:
        return Block(head.end())
    end = next_match(_END, text, head.end())
    if end is None and not complete:
        return UNFINISHED
    body = text[head.end() : end.start() if end else len(text)]
    candidate = of_body(head["name"], body, ended=end is not None)
    if end is None:
        return Block(len(text), (candidate,))
    return Block(end.end() if end[0] == _STOP else end.start(), (candidate,))


def _write(name: str, arguments: Mapping[str, Json]) -> str:
    return f"{_FROM}\n{_RECIPIENT}{name}\n{_CONTENT}{dumps(arguments)}{_STOP}"


FORMATS = (Format("functionary-v2", _read, _write, (_RECIPIENT, _FROM), (_STOP,), (_STOP,), inner=(_CONTENT,)),)
