"""Reads values as models write them: JSON, Python literals, and both with slips.

The one reader of such values, for calls that come as text and for the arguments of native ones alike (Sl). One pass,
no backtracking beyond a bounded look-ahead. What a slip was is listed, never hidden (`Repair`). `OPEN` says that
closers are missing though every string is closed, `CUT` that the text ends inside a string or another value (S1: such
a value is never completed).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from callformats.json_value import Json
from callformats.repairs import SPELLINGS, Repair, why_not
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
_MORE_TO_COME = frozenset("{[(,")


class State(Enum):
    WHOLE = "whole"
    OPEN = "closers are missing"
    CUT = "ends inside a value"
    BROKEN = "no value"


@dataclass(frozen=True, slots=True)
class Parsed:
    """`end` is the index behind what was read. `value` holds what was understood up to there. `doubled`: a key that
    stands twice with different values, so that there is no single reading (Sl).
    """

    value: Json
    end: int
    state: State
    repairs: frozenset[Repair] = frozenset()
    doubled: str | None = None

    @property
    def sure(self) -> bool:
        """Whether it has one reading (Sl)."""
        return self.doubled is None and why_not(self.repairs) is None

    @property
    def mended(self) -> bool:
        """Whether it took more than another spelling."""
        return self.state is not State.WHOLE or not self.repairs <= SPELLINGS

    @property
    def exact(self) -> bool:
        """Whether it is JSON to the letter, so that nothing had to be made of it."""
        return self.state is State.WHOLE and not self.repairs and self.doubled is None


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
    """Reads one value after another from a text. Not for reuse after `_Broken`; see `parse`.

    `most`: so many values, keys and separators are looked at; what has more is `_Broken`.
    """

    def __init__(self, text: str, at: int, quotes: tuple[Quote, ...] = PLAIN_QUOTES, most: int | None = None) -> None:
        self.text = text
        self.at = at
        self.repairs: set[Repair] = set()
        self.doubled: str | None = None
        self._quotes = quotes
        self._owed: list[str] = []
        self._hollow = False
        self._left = sys.maxsize if most is None else most

    def space(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Broken
        end = skip(_SPACE, self.text, self.at)
        if self.text.find("/", self.at, end) >= 0:
            self.repairs.add(Repair.COMMENT)
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
        if closing != '"':
            self.repairs.add(Repair.QUOTES)
        plain = re.compile(r"[^\\" + closing + "]+")
        while at < len(text):
            run = plain.match(text, at)
            if run is not None:
                if _CONTROL.search(run[0]):
                    self.repairs.add(Repair.CONTROL)
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
        if char not in _JSON_ESCAPES:
            self.repairs.add(Repair.ESCAPE)
        if char in _ESCAPES:
            return _ESCAPES[char], at + 2
        if char in "ux":
            width = 4 if char == "u" else 2
            digits = text[at + 2 : at + 2 + width]
            if len(digits) == width and re.fullmatch(r"[0-9a-fA-F]+", digits):
                return chr(int(digits, 16)), at + 2 + width
        self.repairs.add(Repair.BACKSLASH if char.isascii() and char.isalnum() else Repair.SIGN)
        return "\\" + char, at + 2

    def _nested(self, read: Callable[[], Json], opening: str) -> Json:
        if len(self._owed) >= _DEPTH:
            raise _Broken
        self._owed.append(_CLOSE[opening])
        try:
            return read()
        finally:
            self._owed.pop()

    def _scalar(self) -> Json:
        word = _WORD.match(self.text, self.at)
        if word is not None:
            if word.end() >= len(self.text):
                self.at = word.end()
                raise _Cut
            if word[0] not in _WORDS:
                raise _Broken
            self.at = word.end()
            if word[0] not in _JSON_WORDS:
                self.repairs.add(Repair.WORD)
            return _WORDS[word[0]]
        number = _NUMBER.match(self.text, self.at)
        if number is None or not re.search(r"\d", number[0]):
            raise _Broken
        if number.end() >= len(self.text):
            self.at = number.end()
            raise _Cut
        self.at = number.end()
        if _JSON_NUMBER.fullmatch(number[0]) is None:
            self.repairs.add(Repair.NUMBER)
        return _number(number[0])

    def _object(self) -> Json:
        self.at += 1
        doubled = self.text.startswith("{", self.at)
        if doubled:
            # A template language's escape, copied: {{"name": …}}
            self.repairs.add(Repair.BRACES)
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
        self._note(Repair.NO_NAME, any(items))
        return members

    def _members(self, members: dict[str, Json], items: list[Json]) -> None:
        before = "{"  # what stood last: the opener, a comma, a tag's end, or a member ("")
        while not self._ends_here(before):
            char = self.text[self.at]
            if char == "}":
                self._note(Repair.COMMA, bool(before) and bool(members or items))
                self._hollow = self._hollow or bool(before)
                self.at += 1
                return
            if char in ",>":
                self._note(Repair.DANGLING, char == "," and before == "{")
                # "name">, a tag's end in place of a comma
                self._note(Repair.TAG_END if char == ">" else Repair.COMMA, char == ">" or bool(before))
                self.at += 1
                before = char
                continue
            self._note(Repair.NO_COMMA, not before)
            self._hollow = False
            if char == "{" and members and "arguments" not in members:
                self.repairs.add(Repair.NO_KEY)
                members["arguments"] = self.value()
            else:
                self._member(members, items, bool(before))
            before = ""

    def _ends_here(self, before: str, own: str = "}") -> bool:
        """Whether a container ends here without its own closer: the text does, or what is around it. Raises `_Broken`
        at a closer that nobody owes.
        """
        self.space()
        # Where closers are missing, the one behind a comma or an opener may be another's: {"n": 1, "deep": {}
        more_to_come = before in _MORE_TO_COME or self._hollow
        if self.ended:
            self.repairs.add(Repair.CLOSERS)
            self._note(Repair.DANGLING, more_to_come)
            return True
        char = self.text[self.at]
        if char == own or char not in "}])":
            return False
        if char not in self._owed[:-1]:
            raise _Broken
        self.repairs.add(Repair.DANGLING if more_to_come else Repair.INNER_CLOSER)
        return True

    def _note(self, repair: Repair, made: bool) -> None:
        if made:
            self.repairs.add(repair)

    def _member(self, members: dict[str, Json], items: list[Json], parted: bool) -> None:
        key = self._key(items, parted)
        if key is None:
            return
        try:
            value = self.value()
            # The first one stands: what was decided on its word while the rest was not there yet must hold.
            first = members.setdefault(key, value)
            if first == {}:  # a beginning that is written once more, whole (K4)
                members[key] = value
                if value != {}:
                    self.repairs.add(Repair.BEGUN_TWICE)
            elif first != value:
                self.doubled = key
        except _CutInside as cut:
            members[key] = cut.value
            raise

    def _key(self, items: list[Json], parted: bool) -> str | None:
        """The next key with its colon; None when a value without a key was put into `items` (a Python set).

        One that has its closing quote alone, and no comma before it, tells of a string before it that was not closed.
        """
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
                self.repairs.add(Repair.SET)
                items.append(plain)
                return None
        if loose is None:
            raise _Cut if start + 80 > len(self.text) and _partial_key(self.text[start:]) else _Broken
        if _BARE_KEY.match(self.text, start):
            self.repairs.add(Repair.BARE_KEY)
        else:
            self.repairs.add(Repair.LOOSE_KEY if parted or quote is not None else Repair.TORN_KEY)
        self.at = loose.end()
        return loose[1]

    def _array(self) -> Json:
        opening = self.text[self.at]
        closing = _CLOSE[opening]
        self._note(Repair.TUPLE, closing == ")")
        self.at += 1
        items: list[Json] = []
        before = opening
        while not self._ends_here(before, closing):
            char = self.text[self.at]
            if char == closing:
                self._note(Repair.COMMA, bool(before) and bool(items) and closing == "]")
                self._note(Repair.GROUP, closing == ")" and len(items) == 1 and not before)
                self._hollow = self._hollow or bool(before)
                self.at += 1
                break
            if char == ",":
                self._note(Repair.COMMA, bool(before))
                self.at += 1
                before = char
                continue
            self._note(Repair.NO_COMMA, not before)
            self._hollow = False
            self._item(items)
            before = ""
        return items

    def _item(self, items: list[Json]) -> None:
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


def parse(text: str, at: int = 0, quotes: tuple[Quote, ...] = PLAIN_QUOTES, most: int | None = None) -> Parsed:
    """The value that begins at `at` (white space and comments skipped)."""
    reader = LooseReader(text, at, quotes, most)
    try:
        value = reader.value()
    except _CutInside as cut:
        return Parsed(cut.value, len(text), State.CUT, frozenset(reader.repairs), reader.doubled)
    except _Cut:
        return Parsed(None, len(text), State.CUT)
    except _Broken:
        return Parsed(None, reader.at, State.BROKEN)
    state = State.OPEN if Repair.CLOSERS in reader.repairs else State.WHOLE
    return Parsed(value, reader.at, state, frozenset(reader.repairs), reader.doubled)


def with_stray_closers(parsed: Parsed) -> Parsed:
    """The same value, where closers stand behind it that are too many."""
    return replace(parsed, repairs=parsed.repairs | {Repair.STRAY_CLOSERS})


def parse_before(text: str, at: int, closers: tuple[str, ...], most: int | None = None) -> Parsed:
    """`parse`, and where the value breaks at a literal that ends its block, what stands before that, mended.

    Only closers may be missing there: a string or number that is cut stays so. OPEN where the text ends inside such a
    literal.
    """
    parsed = parse(text, at, most=most)
    if parsed.state is not State.BROKEN or parsed.end >= len(text):
        return parsed
    rest = text[parsed.end : parsed.end + max(map(len, closers), default=0)]
    growing = parsed.end + len(rest) >= len(text) and any(closer.startswith(rest) for closer in closers)
    if not growing and not rest.startswith(closers):
        return parsed
    before = parse(text[at : parsed.end] + "\n", most=most)
    if before.state is not State.OPEN:
        return parsed
    if growing and not rest.startswith(closers):
        return replace(before, end=len(text))
    return replace(before, end=parsed.end, state=State.WHOLE)


_FENCED = re.compile(r"\A\s{0,400}```[a-zA-Z0-9]{0,10}[ \t]{0,400}\n")


def read_json(text: str, most: int | None = None) -> Parsed:
    """The one value a complete text holds, be it in a code fence; BROKEN when more than white space, stray closers and
    the end of a fence stand behind it. `most`: how many values, keys and separators are looked at.
    """
    fence = _FENCED.match(text)
    whole = (text[fence.end() :] if fence else text) + "\n"
    parsed = parse_before(whole, 0, ("```",), most)
    rest = whole[parsed.end :].strip()
    bare = rest.removesuffix("```").rstrip()
    if parsed.state is not State.WHOLE or bare.strip("}]"):
        return replace(parsed, state=State.BROKEN) if parsed.state is State.WHOLE else parsed
    parsed = with_stray_closers(parsed) if bare else parsed
    return replace(parsed, repairs=parsed.repairs | {Repair.FENCE}) if fence or bare != rest else parsed
