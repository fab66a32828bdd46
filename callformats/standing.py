"""Where a call stands in a text, whatever notation it is written in (I5).

From each place where the tool's name stands, the text is followed as long as it goes on as a call does: punctuation,
words that belong to calls, and the call's own keys and values, in any order. Where all of them were met, the call
stands there. Prose ends that at once: in "get_weather is for cities such as Berlin" stand words that belong to no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from callformats.json_value import Json
from callformats.plain_words import closed_up, plain, squeezed
from callformats.registry import all_formats
from callformats.shapes import ARGUMENT_KEYS, CALL_KEYS, NAME_KEYS

END = "\n"
"""Stands in a text in plain words where no call goes on."""

_FILLING = 2_000
"""Characters that may stand between two parts of a call."""

_MOST_SKIPPED = 12
"""Pieces of other members that may stand in an object beside the call's own (an id, a thought)."""

_NEAR = 120
"""Characters around a name that say how it stands there."""

_ASSIGNS = frozenset(":=>")
_MEMBER = re.compile(r"[^,{}()\[\];<>\n]{1,300}")
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W_]")
_JOINED = r"[\W_]{0,2}"
_WORD_BEGINS, _WORD_ENDS = "(?<![0-9a-z_])", "(?![0-9a-z_])"
_JSON_WORDS = ("null", "none", "string", "number", "boolean", "object", "array", "json", "xml")
_SOME = "zqx"
"""A word that no format has."""


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A key or a value of a call, as it compares."""

    text: str
    key: bool = False

    def mirrored(self) -> Part:
        return Part(self.text[::-1], self.key)


CallKey = tuple[str, tuple[Part, ...]]
"""What two equal calls have in common: the name, then keys and values in one order."""


def call_key(name: str, arguments: Json) -> CallKey:
    return squeezed(name), tuple(sorted(_parts(arguments)))


def _parts(value: Json) -> Iterator[Part]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield Part(squeezed(key), key=True)
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, float) and value.is_integer():
        yield Part(str(int(value)))
    elif value is not None:  # which is written in too many ways
        yield Part(squeezed(value if isinstance(value, str) else json.dumps(value)))


class Searched:
    """One text in plain words, in which calls are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._mirrored = text[::-1]
        self.squeezed = closed_up(text)

    def places(self, key: CallKey) -> list[int]:
        """Where the name stands and the call with it."""
        name, parts = key[0], [part for part in key[1] if part.text]
        if not name or not all(part.text in self.squeezed for part in parts):
            return []
        return [found.start() for found in _naming(name).finditer(self._text) if self._stands_at(found, parts)]

    def _stands_at(self, found: re.Match[str], parts: list[Part]) -> bool:
        if not parts:
            return _is_empty_call(self._text, found)
        before = closed_up(self._text[max(0, found.start() - _NEAR) : found.start()])
        skips = _MOST_SKIPPED if before.endswith(_name_keys()) else 0
        left = _met(self._text, found.end(), parts, skips, mirrored=False)
        if not left:
            return True
        start = len(self._text) - found.start()
        return not _met(self._mirrored, start, [part.mirrored() for part in left], skips, mirrored=True)


@cache
def _name_keys() -> tuple[str, ...]:
    """What stands before the name of a tool in an object, where other members may stand beside it."""
    return tuple(f"{squeezed(key)}:" for key in NAME_KEYS)


def _naming(name: str) -> re.Pattern[str]:
    """Finds the name as a word, however its letters are joined: `send_message`, `send-message`, `sendmessage`."""
    letters = [re.escape(letter) for letter in name if _LETTER.match(letter)] or [re.escape(name)]
    return re.compile(_WORD_BEGINS + _JOINED.join(letters) + _WORD_ENDS)


@cache
def _filling(*, mirrored: bool) -> frozenset[str]:
    """Words that stand between the parts of a call in some format."""
    written = [one.write(_SOME, {_SOME: _SOME}) for one in all_formats()]
    literals = [literal for one in all_formats() for literal in (*one.opens, *one.closes, *one.inner)]
    words = set(_WORD.findall(plain(" ".join((*written, *literals, *CALL_KEYS, *_JSON_WORDS))))) - {_SOME}
    return frozenset(word[::-1] if mirrored else word for word in words)


def _met(text: str, at: int, parts: list[Part], skips: int, *, mirrored: bool) -> list[Part]:
    """The parts that were not met on the way from `at` on, before the text stops being a call.

    `skips`: so many members that are none of the call's may stand in between (an id, a thought).
    """
    left = sorted(parts, key=lambda part: -len(part.text))
    filling, repeated, limit = _filling(mirrored=mirrored), set[str](), at + _FILLING
    last: Part | None = None
    apart = ""
    while left and at < min(limit, len(text)) and text[at] != END:
        part = next(
            (one for one in left if _is_apart(last, apart, one, mirrored) and _stands(one.text, text, at)), None
        )
        if part is not None:
            left.remove(part)
            repeated.add(part.text)
            at = _behind(part.text, text, at)
            limit, last, apart = at + _FILLING, part, ""
        elif not _is_word(text[at]):
            apart += text[at].strip(' "')
            at += 1
        elif (end := _behind_filling(text, at, filling, repeated)) is not None:
            at = end
        elif skips and (member := _MEMBER.match(text, at)) is not None:
            at, skips = member.end(), skips - 1
        else:
            break
    return left


def _is_apart(last: Part | None, apart: str, part: Part, mirrored: bool) -> bool:
    """Whether the punctuation between two parts is such as stands there in a call: between a key and its value `:`,
    `=` or the end of a tag; behind the name of the tool any."""
    if last is None:
        return bool(apart)
    key, value = (part, last) if mirrored else (last, part)
    return not key.key or (mirrored and value.key) or not _ASSIGNS.isdisjoint(apart)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _behind(part: str, text: str, at: int) -> int:
    """Where a part that stands at `at` ends; blanks and quotes in between do not count."""
    end = at + len(part)
    while (more := len(part) - (end - at - text.count(" ", at, end) - text.count('"', at, end))) > 0 and end < len(
        text
    ):
        end += more
    return end


def _stands(part: str, text: str, at: int) -> bool:
    """Whether all of a part stands there: to the closing quote if one opens before it, else to the end of a word."""
    if part[0] != text[at]:
        return False
    end = _behind(part, text, at)
    if closed_up(text[at:end]) != part:
        return False
    if text[at - 1 : at] == '"':
        return text.startswith('"', end + text.startswith(" ", end))
    return not (_is_word(part[-1]) and end < len(text) and _is_word(text[end]))


def _behind_filling(text: str, at: int, filling: frozenset[str], repeated: set[str]) -> int | None:
    """Where a word ends that belongs to calls, also if a line was wrapped in it; None where none stands."""
    word, end = "", at
    for _ in range(3):
        found = _WORD.match(text, end)
        if found is None:
            return None
        word, end = word + found[0], found.end()
        if word in filling or word in repeated or (word.isdecimal() and len(word) <= 3):
            return end
        if not text.startswith(" ", end):
            return None
        end += 1
    return None


# --- calls without arguments ---------------------------------------------------------------------------------------

_ARGUMENT_WORD = "|".join(sorted({squeezed(key) for key in ARGUMENT_KEYS}, key=len, reverse=True))
_NOTHING = re.compile(rf"\(\)|\{{\}}|(?:{_ARGUMENT_WORD}):?(?:\{{\}}|null|none|\}}|,)")
_NOTHING_BEFORE = re.compile(rf"(?:{_ARGUMENT_WORD}):(?:\{{\}}|null|none|),[\W_]*(?:\w+:[^,{{}}]*,)*(?:\w+:)?\Z")


def _is_empty_call(text: str, found: re.Match[str]) -> bool:
    """Whether the name stands there as a call without arguments, not only as a word."""
    behind = closed_up(text[found.end() : found.end() + _NEAR])
    before = closed_up(text[max(0, found.start() - _NEAR) : found.start()])
    if before.endswith(_callers()) or _NOTHING_BEFORE.search(before) is not None:
        return True
    nothing = _NOTHING.search(behind)
    return nothing is not None and _only_filling(behind[: nothing.start()])


def _only_filling(text: str) -> bool:
    return all(word in _filling(mirrored=False) or word.isdecimal() for word in _WORD.findall(text))


@cache
def _callers() -> tuple[str, ...]:
    """What stands right before the name where markup alone makes a call of it: `<function=`, `<tool_call>`."""
    written = (one.write(_SOME, {}) for one in all_formats())
    around = (squeezed(text).partition(_SOME) for text in written)
    bare = {before[before.rfind("<") :] for before, _, behind in around if not _NOTHING.search(behind[:_NEAR])}
    return ("[tool_calls]", *sorted(bare - {""}))
