"""The text of the fragments of calls, read as JSON values (C2, K4). Pure; linear in the text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from runner.host.events import Json

_BLANK: Final = re.compile(r"[ \t\r\n]*")


class Piece(NamedTuple):
    """One fragment: its place among all of the reply, its text, and what the provider hung on it."""

    order: int
    text: str
    fields: Mapping[str, Json]


@dataclass(slots=True)
class Found:
    """An item by its places in the text of a chain."""

    start: int
    end: int
    value: tuple[object, ...] = ()


class ChainText:
    """The text of neighbouring tracks, read as one. `track_of` gives the track of each piece by its number."""

    def __init__(self, tracks: Sequence[Sequence[Piece]]) -> None:
        self.pieces = [piece for track in tracks for piece in track]
        self.text = "".join(piece.text for piece in self.pieces)
        self.track_of = [number for number, track in enumerate(tracks) for _ in track]
        self._starts = [0, *accumulate(len(piece.text) for piece in self.pieces)]
        self._ends = list(accumulate(sum(len(piece.text) for piece in track) for track in tracks))
        self._found: list[Found] = []

    def piece_at(self, place: int) -> int:
        """The number of the piece that holds a character."""
        return bisect_right(self._starts, place, hi=len(self.pieces)) - 1

    def found(self) -> list[Found]:
        """Every item, in its order. What is no JSON is one, too, as far as it can be one call."""
        at = behind_blanks(self.text, 0)
        while at < len(self.text):
            at = behind_blanks(self.text, self._read(at))
        return self._found

    def first_pieces(self, found: Sequence[Found]) -> list[int]:
        """The first piece of each item, and the number of all pieces. Between two items a piece belongs to the former
        where it came under its id, else to the latter.
        """
        begins, behind = [0], 0
        for before, item in pairwise(found):
            behind = self.piece_at(before.end - 1) + 1
            begin, track = self.piece_at(item.start), self.track_of[behind - 1]
            while begin > behind and self.track_of[begin - 1] > track:
                begin -= 1
            begins.append(begin)
        return [*begins, len(self.pieces)]

    def _read(self, at: int) -> int:
        """Take the item that begins here, or pass over a snapshot that a longer one replaced; the place behind it."""
        value, end = decoded(self.text, at)
        if end > at and self._stands_alone(at, value):
            self._found.append(Found(at, end, (value,)))
            return end
        newest = self._newest_snapshot(at)
        if newest is not None:
            return newest
        start, end = self._spoiled_from(at), self._spoiled_to(at)
        self._found.append(Found(start, end))
        return end

    def _stands_alone(self, at: int, value: object) -> bool:
        """Objects may be glued to others; anything else counts only as a fragment of its own, alone or repeated."""
        if isinstance(value, dict):
            return True
        before = self._before(at)
        return self._starts[self.piece_at(at)] == at and (before is None or before.value == (value,))

    def _newest_snapshot(self, at: int) -> int | None:
        """Where the last of those fragments begins that each repeat the one before and go on; None without any. A whole
        object is never gone on with under another id: what comes there is a call of its own (K4).
        """
        last, newest = self.piece_at(at), None
        begun = self.text[at : self._starts[last + 1]]
        if not begun.startswith("{"):
            return None
        for number in range(last + 1, len(self.pieces)):
            text = self.pieces[number].text
            again = text.lstrip()
            if not text:
                continue
            if not again.startswith(begun) or (self.track_of[number] != self.track_of[last] and _is_whole(begun)):
                break
            begun, last, newest = again, number, self._starts[number] + len(text) - len(again)
        return newest

    def _spoiled_from(self, at: int) -> int:
        """Where a call begins that holds what is no JSON: all that it is glued to is spoiled with it."""
        start = at
        if self.text[at] != "{" and self._before(at) is not None:
            start = self._found.pop().start
        while self._found and self._found[-1].end > self._starts[self.piece_at(start)]:
            start = self._found.pop().start
        return start

    def _spoiled_to(self, at: int) -> int:
        """Where it ends: with its track, or later where it is still open and what follows is no whole object."""
        number = self.track_of[self.piece_at(at)]
        while number + 1 < len(self._ends) and self._is_open(at, self._ends[number]):
            number += 1
        return self._ends[number]

    def _is_open(self, start: int, end: int) -> bool:
        if self.text[start] != "{" or self.text[max(start, end - 64) : end].rstrip().endswith("}"):
            return False
        return not isinstance(decoded(self.text, behind_blanks(self.text, end))[0], dict)

    def _before(self, at: int) -> Found | None:
        """The item before this place in the same track."""
        last = self._found[-1] if self._found else None
        if last is None or self.track_of[self.piece_at(last.end - 1)] != self.track_of[self.piece_at(at)]:
            return None
        return last


def _is_whole(text: str) -> bool:
    value, end = decoded(text, 0)
    return value is not None and behind_blanks(text, end) == len(text)


def whole_pairs(text: str) -> str:
    """The text with the halves of one character joined that came apart (K5); lone ones stay."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _whole_where_it_can(text: str) -> int | float:
    """1.0 is 1 as a JSON value."""
    number = float(text)
    return int(number) if number.is_integer() else number


_DECODER: Final = json.JSONDecoder(parse_float=_whole_where_it_can)


def decoded(text: str, at: int) -> tuple[object, int]:
    """The JSON value that begins at a place, and the place behind it; that place itself where there is none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return value, end


def behind_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
