"""The pseudo-tool by which a weak model answers, and its text as it is written (S8)."""

from __future__ import annotations

import json
import re
from typing import Final

from runner.conversation.request import ToolSpec

REPLY: Final = "reply_to_user"
REPLY_SPEC: Final = ToolSpec(
    REPLY,
    "Answer the user in words. Use it for greetings, thanks, questions you can answer yourself, and to report results.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)

_HEAD = re.compile(
    r"\s*(?:<tool_call>\s*|```(?:json)?\s*)?"
    r'\{\s*"name"\s*:\s*"reply_to_user"\s*,\s*"(?:arguments|parameters|args|input)"\s*:\s*\{\s*"text"\s*:\s*"'
)
_HEAD_CHARACTERS = 300
_SPECIAL = re.compile(r'["\\]')
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


class ReplyDecoder:
    """Gives the text of a `reply_to_user` call while its JSON is still being written.

    Only a call that begins the reply counts; of anything else nothing is given. `text` is what was given so far, always
    a beginning of the string that a JSON parser would read.
    """

    def __init__(self) -> None:
        self._begun = False
        self._off = False
        self._rest = ""
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def feed(self, chunk: str) -> str:
        """Takes the next characters of the reply; gives what became readable with them."""
        if self._off:
            return ""
        self._rest += chunk
        if not self._begun and not self._begin():
            return ""
        new = self._decode()
        self._pieces.append(new)
        return new

    def _begin(self) -> bool:
        head = _HEAD.match(self._rest)
        if head is None:
            self._off = len(self._rest) > _HEAD_CHARACTERS
            return False
        self._begun, self._rest = True, self._rest[head.end() :]
        return True

    def _decode(self) -> str:
        out: list[str] = []
        at, text = 0, self._rest
        while at < len(text):
            if text[at] == '"':
                self._off = True
                break
            if text[at] != "\\":
                plain = _run_end(text, at)
                out.append(text[at:plain])
                at = plain
                continue
            escaped = _escape(text, at)
            if escaped is None:
                break
            piece, at = escaped
            out.append(piece)
        self._rest = text[at:]
        return "".join(out)


def _run_end(text: str, at: int) -> int:
    end = _SPECIAL.search(text, at)
    return end.start() if end else len(text)


def _escape(text: str, at: int) -> tuple[str, int] | None:
    """The character an escape stands for and where it ends; None while more characters are needed."""
    if at + 1 >= len(text):
        return None
    kind = text[at + 1]
    if kind != "u":
        return _ESCAPED.get(kind, kind), at + 2
    if len(text) < at + 6:
        return None
    high = text[at + 2 : at + 6]
    if not re.fullmatch(r"[0-9a-fA-F]{4}", high):
        return "", at + 6
    if not 0xD800 <= int(high, 16) < 0xDC00:
        return chr(int(high, 16)), at + 6
    if len(text) < at + 12:
        return None  # the second half of a pair has to come
    try:
        pair = json.loads(f'"{text[at : at + 12]}"')
    except ValueError:
        return "", at + 6
    return (pair, at + 12) if len(pair) == 1 else ("", at + 6)
