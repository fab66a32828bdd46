"""Ids of tool calls: those that the runner makes, and which id of a call each model reads (K2).

Mistral takes nine letters or digits and nothing else, so every id made here has that form. It is a hash of the place
where the call stands: the same record gives the same id in each request and each later run. A model's own id goes back
to that model as it was, whatever its shape; another model reads one of ours. The one exception are models that number
their calls through the conversation and want to read that form back (Kimi: `functions.find:0`).
"""

from __future__ import annotations

import hashlib
import re
import string
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from runner.guards import defang

LENGTH: Final = 9
OWN_CHARACTERS: Final = 4_096
"""A model's own id may be so long (LiteLLM hangs a signature of Gemini's on it). One that is longer, that holds
characters nobody can print or the marker of a chat template gives way to one of ours."""

_DIGITS: Final = string.digits + string.ascii_letters
_MADE: Final = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
_NUMBERED: Final = re.compile(r"(?P<stem>functions\.[^\s:]{1,64}:)(?P<number>\d{1,6})", re.ASCII)


def made(*place: object) -> str:
    """Nine letters or digits for a place, told by its parts (`"record"`, a cursor, two numbers)."""
    number = int.from_bytes(hashlib.sha256(repr(place).encode("utf-8", "backslashreplace")).digest())
    digits = ""
    for _ in range(LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return digits


def for_others(call_id: str) -> str:
    """The id under which a model reads a call that it did not write itself."""
    return call_id if _MADE.fullmatch(call_id) else made("other", call_id)


def is_numbered(call_id: str) -> bool:
    """Whether an id is of the form `functions.NAME:N`."""
    return _NUMBERED.fullmatch(call_id) is not None


def may_stay(wished: str) -> bool:
    """Whether an id may go back to the model that wrote it."""
    return 0 < len(wished) <= OWN_CHARACTERS and wished.isprintable() and defang(wished) == wished


class CallIds:
    """The ids of one run, unique in each of its requests and the same for a call and its result.

    `wants_numbers` says of a model whether it wants the numbered form in replayed calls; it is asked once a run, so
    that ids do not change between two requests. `saw` is told of each model that wrote calls whether it numbers them.
    """

    def __init__(
        self,
        taken: Iterable[str] = (),
        *,
        wants_numbers: Callable[[str], bool] = lambda _model: False,
        saw: Callable[[str, bool], None] = lambda _model, _numbered: None,
    ) -> None:
        self._taken = set(taken)
        self._wants_numbers = wants_numbers
        self._saw = saw
        self._made = 0
        self._numbers: dict[str, dict[str, str] | None] = {}
        self._next: defaultdict[str, int] = defaultdict(int)

    def take(self, ids: Iterable[str]) -> None:
        """These stand in the history of the run already."""
        for call_id in ids:
            self._kept(call_id)

    def claim(self, wished: str | None, model_id: str = "") -> str:
        """The id of a new call: the one its model wrote where nothing else goes by it, else one of ours."""
        if not wished:
            return self._kept(self._new())
        numbered = _NUMBERED.fullmatch(wished)
        self._saw(model_id, numbered is not None)
        if may_stay(wished) and wished not in self._read_by(model_id) and self._is_free(wished):
            if numbered:
                self._next[model_id] = max(self._next[model_id], int(numbered["number"]) + 1)
            return self._kept(wished)
        return self._kept(self._numbered(numbered["stem"], model_id) if numbered else self._new())

    def sent(self, call_id: str, name: str, author: str | None, model_id: str) -> str:
        """The id under which a model reads a call of `name`; `author` wrote it (None: an earlier run, or the owner)."""
        if author == model_id:
            return call_id
        if model_id not in self._numbers:
            self._numbers[model_id] = {} if self._wants_numbers(model_id) else None
        numbers = self._numbers[model_id]
        if numbers is None:
            return for_others(call_id)
        if call_id not in numbers:
            numbers[call_id] = self._numbered(f"functions.{name}:", model_id)
        return numbers[call_id]

    def _read_by(self, model_id: str) -> Collection[str]:
        """The numbered ids under which a model has read the calls of others."""
        return (self._numbers.get(model_id) or {}).values()

    def _numbered(self, stem: str, model_id: str) -> str:
        """The next id in the numbered form: a model counts from 0 through the conversation as it reads it."""
        while True:
            number = self._next[model_id]
            self._next[model_id] = number + 1
            if self._is_free(new := f"{stem}{number}"):
                return new

    def _is_free(self, call_id: str) -> bool:
        return call_id not in self._taken and for_others(call_id) not in self._taken

    def _kept(self, call_id: str) -> str:
        self._taken.update((call_id, for_others(call_id)))
        return call_id

    def _new(self) -> str:
        while True:
            self._made += 1
            if self._is_free(new := made("call", self._made)):
                return new
