"""gpt-oss harmony: a message with a recipient is a call."""

from __future__ import annotations

import re
from collections.abc import Mapping

from callformats.block import DECLINED, UNFINISHED, Block, Format, Outcome
from callformats.json_value import Json
from callformats.scan import next_match
from callformats.shapes import dumps, of_body

_HEAD = re.compile(
    r"(?:<\|start\|>)?(?:assistant)?[ ]{0,2}(?:to=(?P<first>[\w.-]{1,128})[ ]{0,2})?"
    r"(?:<\|channel\|>)?[ ]{0,2}(?P<channel>analysis|commentary|final)"
    r"[ ]{0,2}(?:to=(?P<second>[\w.-]{1,128})(?:<\|channel\|>)?)?[^<\n]{0,80}"
    r"(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
)
_HEAD_CHARACTERS = 400
_END = re.compile(r"<\|(?:call|end|return|start)\|>")
_TURN = re.compile(r"(?:\s|<\|(?:call|end|return)\|>){0,20}+(?:<(?:\|[a-z]{0,6}\|?)?)?")
_NOT_TOOLS = ("assistant", "user", "self")


def _read(text: str, at: int, complete: bool) -> Outcome:
    head = _HEAD.match(text, at)
    if head is None:
        growing = len(text) - at < _HEAD_CHARACTERS and "<|message|>" not in text[at:] and "\n" not in text[at:]
        return UNFINISHED if growing and not complete else DECLINED
    recipient = head["first"] or head["second"]
    if recipient is None or recipient in _NOT_TOOLS:
        return DECLINED
    end = next_match(_END, text, head.end())
    if end is None and not complete:
        return UNFINISHED
    stop = end.start() if end else len(text)
    body = text[head.end() : stop]
    candidate = of_body(recipient.removeprefix("functions."), body, ended=end is not None)
    closes = end is not None and end[0] != "<|start|>"
    over = end.end() if end and closes else stop
    if head["channel"] != "analysis":
        return Block(over, (candidate,))
    # A call that is only thought of: it counts where the reply stops at it.
    behind = _TURN.match(text, over)
    last = behind is not None and behind.end() >= len(text)
    if last and not complete:
        return UNFINISHED
    return Block(over, (candidate,) if last else ())


def _write(name: str, arguments: Mapping[str, Json]) -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{dumps(arguments)}<|call|>"


FORMATS = (
    Format(
        "harmony",
        _read,
        _write,
        ("<|start|>assistant", "<|channel|>"),
        ("<|call|>", "<|end|>", "<|return|>"),
        ("<|call|>", "<|return|>"),
        inner=("to=", "commentary to=", "analysis to="),
        aliases=("gpt-oss",),
    ),
)
