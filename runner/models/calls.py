"""The calls of one reply, put together from the fragments in which they came (C2, K4). Pure.

Servers tell one call in many ways: cut anywhere, whole in every chunk or again at another index, as snapshots that
grow, glued to the next call, under another id from some fragment on. LangBot drops the index, repeats names and makes
up `call_N` for a missing id. Little of that can be judged before the reply is whole, so fragments are kept by id and
name, and read at the end:

    fragments   c1 f ''    c2 f '{"a":'    c2 f ' 1}'    c3 f '{"b": 2}'    c3 f '{"b": 2}'
    tracks      c1 '{"a": 1}'   c3 '{"b": 2}{"b": 2}'    by id and name; an opening belongs to what it opens
    items       {"a": 1}   {"b": 2}   {"b": 2}           JSON values in the text of neighbouring tracks
    calls       c1 f {"a": 1}   c3 f {"b": 2}            what an id has said already is no further call

An item that goes on over the border of two tracks is a call whose id was changed; one that begins at a border is a new
call. The work is linear in what came.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.host.events import Json
from runner.models.call_text import ChainText, Piece, behind_blanks, decoded, whole_pairs

_MADE_UP: Final = re.compile(r"call_\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class RawCall:
    """A tool call as the model wrote it: `arguments` may be empty, broken or not JSON at all (D3).

    `certain` False: it was read from text and had to be mended, or stood in a thought (J3).
    """

    id: str
    name: str
    arguments: str
    provider_fields: Mapping[str, Json] | None = None
    certain: bool = True


@dataclass(slots=True)
class _Track:
    """What came under one id and name."""

    id: str
    name: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        return not any(piece.text.strip() for piece in self.pieces)

    @property
    def begins_whole(self) -> bool:
        """Whether its first fragment with any text is a whole object."""
        text = next((piece.text for piece in self.pieces if piece.text.strip()), "")
        value, end = decoded(text, behind_blanks(text, 0))
        return isinstance(value, dict) and behind_blanks(text, end) == len(text)

    def may_go_on_as(self, other: _Track) -> bool:
        """Whether a call that began here may have gone on there."""
        return self.id == other.id or self.name == other.name or not self.name or not other.name


@dataclass(slots=True)
class _Item:
    """One call as it was told once. `value` holds its JSON value, or nothing where it has none."""

    id: str
    name: str
    text: str
    order: int
    fields: dict[str, Json]
    value: tuple[object, ...] = ()

    @property
    def says_nothing(self) -> bool:
        """`{}`, `null` or an empty string: what servers send before the arguments."""
        return self.value in (({},), (None,), ("",))

    def identity(self) -> str:
        """Equal for equal JSON values, whatever the order of keys; the text where it is no JSON."""
        try:
            return json.dumps(self.value, sort_keys=True) if self.value else self.text.strip()
        except RecursionError:
            return self.text.strip()


class Fragments:
    """Takes the fragments of a reply in their order; `calls` puts them together once the reply has ended."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._newest: dict[str, _Track] = {}
        self._last: _Track | None = None
        self._count = 0

    def take(self, call_id: str, name: str, text: str, fields: Mapping[str, Json]) -> None:
        """One fragment. Id and name may be empty; without both it goes on with the fragment before it."""
        known = self._newest.get(call_id) if call_id else self._last
        track = known if known is not None and not name else None
        if track is None:
            track = self._tracks.setdefault((call_id, name), _Track(call_id, name))
        track.pieces.append(Piece(self._count, text, fields))
        self._count += 1
        self._last = self._newest[track.id] = track

    def calls(self) -> tuple[RawCall, ...]:
        """The calls in the order in which they began, each once."""
        items = [item for chain in _chains(_opened(self._tracks.values())) for item in _items(chain)]
        return tuple(RawCall(item.id, item.name, item.text, item.fields or None) for item in _each_once(items))


def _opened(tracks: Iterable[_Track]) -> Iterator[_Track]:
    """The tracks, each with the opening that came before it under another id: name and id alone, or white space.

    A whole object under a new id is a call of its own, and what came before it one without arguments; but where LangBot
    had to make up the first id, the server was late with its own, and white space inside an open call opens nothing.
    """
    waiting: list[_Track] = []
    before: _Track | None = None
    for track in tracks:
        opens = bool(waiting) and waiting[0].name in (track.name, "")
        if track.is_blank and (opens or not waiting):
            waiting.append(track)
        elif (
            opens
            and not track.is_blank
            and (not track.begins_whole or _got_its_id(waiting[0], track) or _is_inside(before, waiting))
        ):
            pieces = [piece for opening in waiting for piece in opening.pieces]
            yield _Track(waiting[0].id or track.id, track.name, [*pieces, *track.pieces])
            waiting = []
        else:
            yield from waiting
            waiting = [track] if track.is_blank else []
            if not track.is_blank:
                yield track
        before = before if track.is_blank else track
    yield from waiting


def _is_inside(before: _Track | None, blanks: Sequence[_Track]) -> bool:
    """Whether white space stands in a call that is open: `{"n":`, ` `, `{}`, `}`, each under an id of its own."""
    if before is None or not any(piece.text for track in blanks for piece in track.pieces):
        return False
    last = next((piece.text.rstrip() for piece in reversed(before.pieces) if piece.text.strip()), "}")
    return not last.endswith("}")


def _got_its_id(opening: _Track, track: _Track) -> bool:
    return _MADE_UP.fullmatch(opening.id) is not None and _MADE_UP.fullmatch(track.id) is None


def _chains(tracks: Iterable[_Track]) -> Iterator[list[_Track]]:
    """Neighbouring tracks over whose borders a call may go on."""
    chain: list[_Track] = []
    for track in tracks:
        if chain and (track.is_blank or chain[-1].is_blank or not chain[-1].may_go_on_as(track)):
            yield chain
            chain = []
        chain.append(track)
    if chain:
        yield chain


def _each_once(items: Sequence[_Item]) -> list[_Item]:
    """Without what an id says again under the same name, and without the nothing with which it began."""
    by_name: defaultdict[tuple[str, str], list[_Item]] = defaultdict(list)
    for item in items:
        by_name[item.id, item.name].append(item)
    once: list[_Item] = []
    for (call_id, _), told in by_name.items():
        once += _told_once(told) if call_id and len(told) > 1 else told
    return sorted(once, key=lambda item: item.order)


def _told_once(told: Sequence[_Item]) -> Iterable[_Item]:
    last_opening = next((at for at, item in enumerate(told) if not item.says_nothing), len(told)) - 1
    known: dict[str, _Item] = {}
    opening: dict[str, Json] = {}
    for at, item in enumerate(told):
        if at <= last_opening and at + 1 < len(told):
            opening.update(item.fields)
            continue
        known.setdefault(item.identity(), item).fields.update({**opening, **item.fields})
        opening = {}
    return known.values()


def _items(chain: Sequence[_Track]) -> list[_Item]:
    """All that the tracks of a chain tell, each with the fragments that told it."""
    if chain[0].is_blank:
        pieces = chain[0].pieces
        return [_item(chain, pieces, "".join(piece.text for piece in pieces))]
    text = ChainText([track.pieces for track in chain])
    found = text.found()
    begins = text.first_pieces(found)
    items = []
    for number, each in enumerate(found):
        last = text.piece_at(each.end - 1)
        behind = max(begins[number + 1], last + 1)
        first, final = text.track_of[begins[number]], text.track_of[last]
        pieces = text.pieces[begins[number] : behind]
        items.append(_item(chain[first : final + 1], pieces, text.text[each.start : each.end], each.value))
    return items


def _item(tracks: Sequence[_Track], pieces: Sequence[Piece], text: str, value: tuple[object, ...] = ()) -> _Item:
    fields: dict[str, Json] = {}
    for piece in pieces:
        fields.update(piece.fields)
    call_id = next((track.id for track in tracks if track.id), "")
    name = next((track.name for track in tracks if track.name), "")
    return _Item(call_id, name, whole_pairs(text), min(piece.order for piece in pieces), fields, value)
