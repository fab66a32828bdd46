"""Mending JSON only where one reading is possible (S1).

What is mended: a code fence around the whole, one trailing comma before a closer, Python's `True`, `False`, `None`,
strings in single quotes whose closing quote is followed by `,` `:` `}` `]`, raw line breaks inside strings, and closers
missing at the very end. What is not: a string cut off mid-way, a missing value or key, missing quotes, comments, text
around the object, surplus closers, a text that breaks off after a comma or an opener (more was to come). Those have
no single reading, and a call must never be invented. Pure, linear time.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"\A```[a-zA-Z0-9]{0,10}[ \t]*\n(?P<body>.*?)\n?[ \t]*```\Z", re.DOTALL)
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'(?=\s*[,:}\]]|\s*\Z)", re.DOTALL)
_WORD = re.compile(r"[^\s,:{}\[\]\"']+")
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_BLANK = re.compile(r"\s+")
_CLOSERS = {"{": "}", "[": "]"}


class Unmendable(Exception):
    """The text has no single reading; `str()` says why, for the model."""


def mend(text: str) -> str:
    """JSON text of the one reading `text` has; still to be parsed, with control characters allowed in strings.

    Raises Unmendable.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    return _Mender(fenced["body"].strip() if fenced else text).mended()


class _Mender:
    def __init__(self, text: str) -> None:
        self._text = text
        self._out: list[str] = []
        self._open: list[str] = []

    def mended(self) -> str:
        at = 0
        while at < len(self._text):
            at = self._step(at)
        if self._open and self._out[-1] in (",", "{", "["):
            raise Unmendable(f"it breaks off after a '{self._out[-1]}'")
        return "".join(self._out) + "".join(_CLOSERS[opener] for opener in reversed(self._open))

    def _step(self, at: int) -> int:
        char = self._text[at]
        if blank := _BLANK.match(self._text, at):
            return blank.end()
        if char in "{[":
            self._open.append(char)
        elif char in "}]":
            self._close(char)
        elif char in "\"'":
            return self._string(at)
        elif char not in ",:":
            return self._literal(at)
        self._out.append(char)
        return at + 1

    def _close(self, char: str) -> None:
        if not self._open or _CLOSERS[self._open.pop()] != char:
            raise Unmendable(f"a '{char}' closes nothing")
        if self._out[-1] == "," and len(self._out) > 1 and self._out[-2] not in ("{", "[", ",", ":"):
            self._out.pop()

    def _string(self, at: int) -> int:
        quoted = (_DOUBLE_QUOTED if self._text[at] == '"' else _SINGLE_QUOTED).match(self._text, at)
        if quoted is None:
            raise Unmendable("a string in it is not closed")
        self._out.append(quoted[0] if self._text[at] == '"' else _double_quoted(quoted[0][1:-1]))
        return quoted.end()

    def _literal(self, at: int) -> int:
        word = _WORD.match(self._text, at)
        if word is None:
            raise Unmendable("it is no JSON")
        # The blank keeps two neighbouring words two, so that the parser refuses them.
        self._out.append(f"{_PYTHON_WORDS.get(word[0], word[0])} ")
        return word.end()


def _double_quoted(inside: str) -> str:
    return '"' + re.sub(r"\\'|\"|\\\\|\\.", _requoted, inside) + '"'


def _requoted(found: re.Match[str]) -> str:
    if found[0] == "\\'":
        return "'"
    return '\\"' if found[0] == '"' else found[0]
