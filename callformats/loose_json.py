"""Reads values as weak models write them: JSON, Python literals, and both with slips.

One pass, no backtracking beyond a bounded look-ahead. What a slip was is reported, never hidden: `mended` for
anything but clean JSON or Python, `OPEN` when closers are missing though every string is closed, `CUT` when the text
ends inside a string or another value (S1: such a value is never completed).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from callformats.json_value import Json
from callformats.scan import skip

_SPACE = re.compile(r"(?:\s|/\*[^*]{0,400}\*/|//[^\n]{0,400}(?=\n))*+")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_JSON_WORDS = frozenset({"true", "false", "null"})
_JSON_ESCAPES = frozenset('ntrbf/\\"u')
_CONTROL = re.compile(r"[\x00-\x1f]")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*)?(?:\.\d*)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_][\w.$-]*")
_LOOSE_KEY = re.compile(r"[\"']?([A-Za-z_][\w.$-]{0,80})(?:[\"']\s{0,20}[:=]|\s{0,20}[:=]|[\"']?>)")
_BARE_KEY = re.compile(r"([A-Za-z_][\w.$-]{0,80})\s{0,20}:")
_WORDS: dict[str, Json] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "True": True,
    "False": False,
    "None": None,
    "undefined": None,
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "\n": ""}
_DEPTH = 60
_CLOSE = {"{": "}", "[": "]", "(": ")"}


class State(Enum):
    WHOLE = "whole"
    OPEN = "closers are missing"
    CUT = "ends inside a value"
    BROKEN = "no value"


@dataclass(frozen=True, slots=True)
class Parsed:
    """`end` is the index behind what was read. `value` holds what was understood up to there. `exact`: it is JSON to
    the letter, so that nothing had to be made of it. `doubled`: a key that stands twice with different values, so that
    there is no single reading (Sl).
    """

    value: Json
    end: int
    state: State
    mended: bool = False
    exact: bool = False
    doubled: str | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """A pair of string delimiters. `escapes`: whether a backslash means something between them."""

    opening: str
    closing: str
    escapes: bool


PLAIN_QUOTES = (Quote('"', '"', True), Quote("'", "'", True))


class _Broken(Exception):
    pass


class _Cut(Exception):
    pass


class LooseReader:
    """Reads one value after another from a text. Not for reuse after `_Broken`; see `parse`."""

    def __init__(self, text: str, at: int, quotes: tuple[Quote, ...] = PLAIN_QUOTES) -> None:
        self.text = text
        self.at = at
        self.mended = False
        self.open = False
        self.exact = True
        self.doubled: str | None = None
        self._quotes = quotes
        self._owed: list[str] = []

    def space(self) -> None:
        end = skip(_SPACE, self.text, self.at)
        if self.text.find("/", self.at, end) >= 0:
            self.mended = True
        self.at = end

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    def value(self) -> Json:
        """The value at the cursor. Raises `_Cut` at the end of the text and `_Broken` where no value stands."""
        self.space()
        if self.ended:
            raise _Cut
        quote = self.quote_here()
        if quote is not None:
            return self.string(quote)
        char = self.text[self.at]
        if char == "{":
            return self._nested(self._object, char)
        if char in "[(":
            self.exact = self.exact and char == "["
            return self._nested(self._array, char)
        return self._scalar()

    def quote_here(self) -> Quote | None:
        for quote in self._quotes:
            if self.text.startswith(quote.opening, self.at):
                return quote
        return None

    def string(self, quote: Quote) -> str:
        at = self.at + len(quote.opening)
        if not quote.escapes:
            end = self.text.find(quote.closing, at)
            if end < 0:
                self.at = len(self.text)
                raise _Cut
            self.at = end + len(quote.closing)
            return self.text[at:end]
        pieces: list[str] = []
        text, closing = self.text, quote.closing
        self.exact = self.exact and closing == '"'
        plain = re.compile(r"[^\\" + closing + "]+")
        while at < len(text):
            run = plain.match(text, at)
            if run is not None:
                self.exact = self.exact and not _CONTROL.search(run[0])
                pieces.append(run[0])
                at = run.end()
            elif text[at] == closing:
                self.at = at + 1
                return _without_lone_surrogates("".join(pieces))
            else:
                piece, at = self._escape(at)
                pieces.append(piece)
        self.at = len(text)
        raise _Cut

    def _escape(self, at: int) -> tuple[str, int]:
        text = self.text
        if at + 1 >= len(text):
            self.at = len(text)
            raise _Cut
        char = text[at + 1]
        self.exact = self.exact and char in _JSON_ESCAPES
        if char in _ESCAPES:
            return _ESCAPES[char], at + 2
        if char in "ux":
            width = 4 if char == "u" else 2
            digits = text[at + 2 : at + 2 + width]
            if len(digits) == width and re.fullmatch(r"[0-9a-fA-F]+", digits):
                return chr(int(digits, 16)), at + 2 + width
        self.mended = True
        return "\\" + char, at + 2

    def _nested(self, read: Callable[[], Json], opening: str) -> Json:
        if len(self._owed) >= _DEPTH:
            raise _Broken
        self._owed.append(_CLOSE[opening])
        try:
            return read()
        finally:
            self._owed.pop()

    def _closed_outside(self, char: str) -> bool:
        """Whether a closer is owed further out: then the one owed here is missing, and every string is closed."""
        if char not in self._owed[:-1]:
            return False
        self.mended = True
        return True

    def _scalar(self) -> Json:
        word = _WORD.match(self.text, self.at)
        if word is not None:
            if word.end() >= len(self.text):
                self.at = word.end()
                raise _Cut
            if word[0] not in _WORDS:
                raise _Broken
            self.at = word.end()
            self.exact = self.exact and word[0] in _JSON_WORDS
            return _WORDS[word[0]]
        number = _NUMBER.match(self.text, self.at)
        if number is None or not re.search(r"\d", number[0]):
            raise _Broken
        if number.end() >= len(self.text):
            self.at = number.end()
            raise _Cut
        self.at = number.end()
        self.exact = self.exact and _JSON_NUMBER.fullmatch(number[0]) is not None
        return _number(number[0])

    def _object(self) -> Json:
        self.at += 1
        doubled = self.text.startswith("{", self.at)
        if doubled:
            # A template language's escape, copied: {{"name": …}}
            self.mended = True
            self.at += 1
        members: dict[str, Json] = {}
        items: list[Json] = []
        try:
            self._members(members, items)
        except _Cut as cut:
            raise _CutInside(members) from cut
        if doubled and self.text.startswith("}", self.at):
            self.at += 1
        if items and not members:
            return items
        return members

    def _members(self, members: dict[str, Json], items: list[Json]) -> None:
        parted = True
        while True:
            self.space()
            if self.ended:
                self.open = True
                return
            char = self.text[self.at]
            if char == "}":
                self.exact = self.exact and not (parted and (members or items))
                self.at += 1
                return
            if char == ",":
                self.exact = self.exact and not parted
                self.at += 1
                parted = True
                continue
            if char == ">":
                # "name">, a tag's end in place of a comma
                self.mended = parted = True
                self.at += 1
                continue
            if char in "])":
                if self._closed_outside(char):
                    return
                raise _Broken
            self.mended = self.mended or not parted
            parted = False
            if char == "{" and members and "arguments" not in members:
                self.mended = True
                members["arguments"] = self.value()
                continue
            self._member(members, items)

    def _member(self, members: dict[str, Json], items: list[Json]) -> None:
        key = self._key(items)
        if key is None:
            return
        try:
            value = self.value()
            # The first one stands: what was decided on its word while the rest was not there yet must hold.
            first = members.setdefault(key, value)
            if first == {}:  # a beginning that is written once more, whole (K4)
                members[key] = value
                self.exact = self.exact and value == {}
            elif first != value:
                self.doubled, self.exact = key, False
        except _CutInside as cut:
            members[key] = cut.value
            raise

    def _key(self, items: list[Json]) -> str | None:
        """The next key with its colon; None when a value without a key was put into `items` (a Python set)."""
        start = self.at
        loose = _LOOSE_KEY.match(self.text, start)
        quote = self.quote_here()
        if quote is not None:
            plain = self.string(quote)
            self.space()
            if self.text.startswith(":", self.at):
                self.at += 1
                return plain
            if self.ended:
                raise _Cut
            if self.text[self.at] in ",}" and not (loose and loose.end() < self.at):
                self.exact = False
                items.append(plain)
                return None
        if loose is None:
            raise _Cut if start + 80 > len(self.text) and _partial_key(self.text[start:]) else _Broken
        self.exact = False
        self.mended = self.mended or not _BARE_KEY.match(self.text, start)
        self.at = loose.end()
        return loose[1]

    def _array(self) -> Json:
        closing = _CLOSE[self.text[self.at]]
        self.at += 1
        items: list[Json] = []
        parted = True
        while True:
            self.space()
            if self.ended:
                self.open = True
                return items
            char = self.text[self.at]
            if char == closing:
                self.exact = self.exact and not (parted and items)
                self.at += 1
                return items
            if char == ",":
                self.exact = self.exact and not parted
                self.at += 1
                parted = True
                continue
            if char in "}])":
                if self._closed_outside(char):
                    return items
                raise _Broken
            self.mended = self.mended or not parted
            parted = False
            try:
                items.append(self.value())
            except _CutInside as cut:
                raise _CutInside([*items, cut.value]) from cut
            except _Cut as cut:
                raise _CutInside(items) from cut


class _CutInside(_Cut):
    """A cut inside a container: `value` is what stood before it."""

    def __init__(self, value: Json) -> None:
        super().__init__()
        self.value = value


def _partial_key(rest: str) -> bool:
    return re.fullmatch(r"[\"']?[A-Za-z_]?[\w.$-]*[\"']?\s*", rest) is not None


def _number(text: str) -> int | float:
    text = text.replace("_", "")
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError as wrong:
        raise _Broken from wrong
    if number in (float("inf"), float("-inf")):
        raise _Broken
    return number


def _without_lone_surrogates(text: str) -> str:
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def parse(text: str, at: int = 0, quotes: tuple[Quote, ...] = PLAIN_QUOTES) -> Parsed:
    """The value that begins at `at` (white space and comments skipped)."""
    reader = LooseReader(text, at, quotes)
    try:
        value = reader.value()
    except _CutInside as cut:
        return Parsed(cut.value, len(text), State.CUT, True, doubled=reader.doubled)
    except _Cut:
        return Parsed(None, len(text), State.CUT, True)
    except _Broken:
        return Parsed(None, reader.at, State.BROKEN, True)
    state = State.OPEN if reader.open else State.WHOLE
    mended = reader.mended or reader.open
    return Parsed(value, reader.at, state, mended, reader.exact and not mended, reader.doubled)


def parse_before(text: str, at: int, closers: tuple[str, ...]) -> Parsed:
    """`parse`, and where the value breaks at a literal that ends its block, what stands before that, mended.

    Only closers may be missing there: a string or number that is cut stays so. OPEN where the text ends inside such a
    literal.
    """
    parsed = parse(text, at)
    if parsed.state is not State.BROKEN or parsed.end >= len(text):
        return parsed
    rest = text[parsed.end : parsed.end + max(map(len, closers), default=0)]
    growing = parsed.end + len(rest) >= len(text) and any(closer.startswith(rest) for closer in closers)
    if not growing and not rest.startswith(closers):
        return parsed
    before = parse(text[at : parsed.end] + "\n")
    if before.state is not State.OPEN:
        return parsed
    if growing and not rest.startswith(closers):
        return Parsed(before.value, len(text), State.OPEN, True, doubled=before.doubled)
    return Parsed(before.value, parsed.end, State.WHOLE, True, doubled=before.doubled)


def loads(text: str) -> Parsed:
    """The one value a complete text holds; BROKEN when more than white space and stray closers stands behind it."""
    whole = text + "\n"
    parsed = parse(whole)
    rest = whole[parsed.end :].strip()
    if parsed.state is State.WHOLE and rest:
        if rest.strip("}]") == "":
            return Parsed(parsed.value, len(text), State.WHOLE, True, doubled=parsed.doubled)
        return Parsed(parsed.value, parsed.end, State.BROKEN, True)
    return parsed
