"""Ids of tool calls that are unique in a run and that every provider takes (C2)."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_CHARACTERS = 40
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,40}", re.ASCII)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+", re.ASCII)


class CallIds:
    """Hands out ids for one run. Models repeat theirs over rounds (`call_0`) or send none."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._count = 0

    def claim(self, wished: str | None) -> str:
        """The wished id where it is legal and free, else one made from it, else `call_1`, `call_2`, …"""
        stem = _ILLEGAL.sub("_", (wished or "")[: 4 * MAX_CHARACTERS]).strip("_")
        if wished and _LEGAL.fullmatch(wished):
            stem = wished
        if stem and len(stem) <= MAX_CHARACTERS and stem not in self._taken:
            self._taken.add(stem)
            return stem
        while True:
            self._count += 1
            ending = f"_{self._count}"
            found = (stem or "call")[: MAX_CHARACTERS - len(ending)] + ending
            if found not in self._taken:
                self._taken.add(found)
                return found
