"""Explicit `path` and `url` fields of a large result: what the model needs to get at the rest (D4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import regex

from runner.conversation.cut import sendable
from runner.guards import defang
from runner.tools.json_text import MAX_DEPTH

_NAME = regex.compile(r"(?:.*_)?(?:path|url)", regex.IGNORECASE | regex.DOTALL)
_IN_TEXT = regex.compile(r'(?:path|url|PATH|URL)"\s{0,8}:\s{0,8}"((?:[^"\\\n]|\\.){1,2048})"')
_LABEL_BEFORE = regex.compile(r'"((?:\w{1,40}_)?)\Z')
_LABEL_CHARACTERS = 42
_VALUE_CHARACTERS = 2_048
_MAX_STEPS = 100_000
_LOOKED_AT = (str, dict, list, tuple)
_KEY_CHARACTERS = 80
_MAX_MISSES = 20
_TOTAL_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class References:
    """`kept` maps a field's place (`files[0].path`) to its value; `more` counts the ones without room.

    `all_seen` False: the result was too large to be looked through, so there may be more than `more` says.
    """

    kept: Mapping[str, str] = field(default_factory=dict)
    more: int = 0
    all_seen: bool = True

    def block(self) -> str:
        """The line that stands at the end of a cut result; empty without references."""
        if not self.kept and not self.more:
            return ""
        listed = _listed(self.kept) if self.kept else ""
        joint = " and " if self.kept and self.more else ""
        least = "" if self.all_seen else "at least "
        return f"{_OPENING}{listed}{joint}{f'{least}{self.more:,} more' if self.more else ''}]"


_OPENING = "\n[references in the full result: "
_ENDING_CHARACTERS = len(" and at least 1,000,000 more]")


def _listed(kept: Mapping[str, str]) -> str:
    return json.dumps(dict(kept), ensure_ascii=False, separators=(",", ":"))


def collect(value: object, room: int) -> References:
    """The distinct references of a value whose `block()` fits `room` characters; the rest is counted. Linear time.

    Long references (over 2,048 characters) are counted, never cut: half an address is of no use.
    """
    left = min(room, _TOTAL_CHARACTERS) - len(_OPENING) - _ENDING_CHARACTERS
    if left < 0:
        return References()
    collector = _Collector(left)
    collector.look("", value, None, 0)
    return References(collector.kept, len(collector.seen) - len(collector.kept), collector.all_seen)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands; written out only for the few that are kept."""

    above: _Place | None
    step: str | int

    def __str__(self) -> str:
        before = str(self.above) if self.above else ""
        if isinstance(self.step, int):
            return f"{before}[{self.step}]"
        return f"{before}.{self.step[:_KEY_CHARACTERS]}" if before else self.step[:_KEY_CHARACTERS]


class _Collector:
    """Goes through a value in its order. Shared parts can make a small value endless, so the steps are bounded."""

    def __init__(self, left: int) -> None:
        self.kept: dict[str, str] = {}
        self.seen: set[str] = set()
        self._left = left
        self._misses = 0
        self._steps = _MAX_STEPS

    @property
    def all_seen(self) -> bool:
        return self._steps > 0

    def look(self, name: str, item: object, place: _Place | None, depth: int) -> None:
        if isinstance(item, str):
            self._look_at_text(name, item, place)
        elif isinstance(item, dict) and depth <= MAX_DEPTH:
            for key, part in item.items():
                if isinstance(part, _LOOKED_AT) and isinstance(key, str) and self._step():
                    self.look(key, part, _Place(place, key), depth + 1)
        elif isinstance(item, list | tuple) and depth <= MAX_DEPTH:
            for at, part in enumerate(item):
                if isinstance(part, _LOOKED_AT) and self._step():
                    self.look(name, part, _Place(place, at), depth + 1)

    def _step(self) -> bool:
        self._steps -= 1
        return self._steps > 0

    def _look_at_text(self, name: str, text: str, place: _Place | None) -> None:
        if text and name[-4:].lower().endswith(("path", "url")) and _NAME.fullmatch(name):
            self._found(text, place)
        elif text[:1] in ("{", "[") or name in ("", "text"):
            for number, (label, reference) in enumerate(_in_text(text)):
                if not self._step():
                    return
                self._found(reference, _Place(None, f"{label}#{number}"))

    def _found(self, reference: str, place: _Place | None) -> None:
        if reference in self.seen:
            return
        self.seen.add(reference)
        if len(reference) > min(self._left, _VALUE_CHARACTERS):
            return
        # Trying each of a million references costs more than the last line of the list is worth.
        if self._misses >= _MAX_MISSES:
            return
        entry = {defang(sendable(str(place))): defang(sendable(reference))}
        cost = len(_listed(entry))
        if cost <= self._left and not entry.keys() & self.kept.keys():
            self.kept |= entry
            self._left -= cost
        else:
            self._misses += 1


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """References of JSON that came as text, as MCP servers send it."""
    for found in _IN_TEXT.finditer(text):
        label = _LABEL_BEFORE.search(text[max(0, found.start() - _LABEL_CHARACTERS) : found.start()])
        if label is None:
            continue
        name = label[1] + found[0].partition('"')[0]
        if "\\" not in found[1]:
            yield name, found[1]
        elif (plain := _unescaped(found[1])) is not None:
            yield name, plain


def _unescaped(quoted: str) -> str | None:
    try:
        text = json.loads(f'"{quoted}"', strict=False)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
