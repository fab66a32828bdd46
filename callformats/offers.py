"""The tools on offer: whose name is meant, and what becomes of arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from callformats.block import Candidate
from callformats.offered import Offered, spec_of, without_channel
from callformats.schema import Schema, properties_of

_SHORTEST_FOR_ONE_SLIP = 5
_SHORTEST_FOR_TWO_SLIPS = 10
_LONGEST_NAME = 128
_PREFIXES = tuple(
    f"{space}{dot}" for dot in (".", ":") for space in ("functions", "function", "tools", "tool", "default_api")
)


@dataclass(frozen=True, slots=True)
class Meant:
    """The tool on offer that a written name means. `mended`: the name was not written exactly so."""

    name: str
    schema: Schema
    mended: bool = False


class Offers:
    """Tool names and schemas of one request. `tools` None: any name is taken for a tool (reading foreign logs)."""

    def __init__(self, tools: Sequence[Offered] | None) -> None:
        self.any = tools is None
        self._schemas = dict(map(_name_and_schema, tools or ()))
        self._first = frozenset(name.casefold()[:1] for name in self._schemas)
        self._plain: dict[str, list[str]] = {}
        for name in self._schemas:
            self._plain.setdefault(_plain(name), []).append(name)

    def knows(self, written: str) -> bool:
        """Whether a tool is meant by this name."""
        return self.find(written) is not None

    def spells(self, written: str) -> bool:
        """Whether this is the name of a tool, in any case."""
        if self.any:
            return self.find(written) is not None
        return any(name.casefold() == written.casefold() for name in self._schemas)

    def __bool__(self) -> bool:
        return bool(self._schemas)

    def may_grow(self, written: str) -> bool:
        """Whether more characters could make this the name of a tool, in any case."""
        if self.any:
            return len(written) < _LONGEST_NAME and (not written or _NAME.fullmatch(written) is not None)
        start = written.casefold()
        return any(len(start) < len(name) and name.casefold().startswith(start) for name in self._schemas)

    def begins(self, char: str) -> bool:
        """Whether the name of a tool begins with this character, in any case."""
        return (_NAME.fullmatch(char) is not None) if self.any else char.casefold()[:1] in self._first

    def find(self, written: str) -> Meant | None:
        """The tool a written name means: exactly, else the only one near it (S1)."""
        written = without_channel(written)
        if self.any:
            return Meant(_without_prefix(written), {}) if _NAME.fullmatch(written) else None
        if written in self._schemas:
            return Meant(written, self._schemas[written])
        name = _without_prefix(written.strip())
        if name in self._schemas:
            return Meant(name, self._schemas[name])
        near = self._near(name)
        return Meant(near, self._schemas[near], mended=True) if near is not None else None

    def unglued(self, candidate: Candidate) -> Candidate:
        """The candidate with its name and its first key apart, where they were written in one: `get_weathercity`."""
        given = candidate.arguments
        if not candidate.glued or not isinstance(given, dict):
            return candidate
        written = candidate.name
        apart = [(name, written[len(name) :]) for name in self._schemas if written.startswith(name)]
        fits = [(name, key) for name, key in apart if key in properties_of(self._schemas[name])]
        if len(fits) != 1:
            return candidate
        ((name, key),) = fits
        arguments = {key: given[written], **{other: value for other, value in given.items() if other != written}}
        return replace(candidate, name=name, arguments=arguments, mended=True, glued=False)

    def _near(self, name: str) -> str | None:
        if not name or len(name) > _LONGEST_NAME:
            return None
        same = self._plain.get(_plain(name), [])
        if same:
            return same[0] if len(same) == 1 else None
        plain = _plain(name)
        slips = 2 if len(plain) >= _SHORTEST_FOR_TWO_SLIPS else 1 if len(plain) >= _SHORTEST_FOR_ONE_SLIP else 0
        near = [tool for other, tools in self._plain.items() if _within(plain, other, slips) for tool in tools]
        return near[0] if len(near) == 1 else None


_NAME = re.compile(r"[\w.:/-]{1,128}")


def _name_and_schema(tool: Offered) -> tuple[str, Schema]:
    spec = spec_of(tool)
    return spec.name, spec.parameters


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _within(one: str, other: str, slips: int) -> bool:
    """Whether one becomes the other by at most `slips` inserted, dropped, changed or swapped characters."""
    if slips == 0 or abs(len(one) - len(other)) > slips:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, char in enumerate(one, 1):
        older, before, row = before, row, [index]
        for column, against in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (char != against))
            if older and column > 1 and char == other[column - 2] and one[index - 2] == against:
                cost = min(cost, older[column - 2] + 1)
            row.append(cost)
    return row[-1] <= slips
