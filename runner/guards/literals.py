"""What the call formats mean by a literal, as shapes: a format that is added is made inert by that alone (I6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from callformats import INERT
from runner.guards.markers import Shape

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(>| [a-z]{1,12}=|=|)\Z")


def shapes_of(literals: Iterable[str]) -> Iterator[Shape]:
    """A shape for each literal that has a character to change, in a stable order; none for plain words.

    A tag counts in any case, with stray blanks and with attributes, as models write it; anything else as it is.
    """
    for literal in sorted(set(literals)):
        tag = _TAG.match(literal)
        if tag is not None:
            yield Shape("<", rf"[ \t]{{0,4}}/?[ \t]{{0,4}}(?i:{re.escape(tag[2])})(?![A-Za-z0-9_])")
        elif (at := _spared(literal)) is not None:
            yield Shape(literal[at], _either(literal[at + 1 :]), _either(literal[:at]))


def _spared(literal: str) -> int | None:
    """Which character is changed: the one that ordinary text can spare best."""
    places = (literal.find(character) for character in INERT)
    return next((at for at in places if at >= 0), None)


def _either(text: str) -> str:
    """The text, whether another marker in it is inert already or not."""
    return "".join(f"[{re.escape(c)}{INERT[c]}]" if c in INERT else re.escape(c) for c in text)
