"""Chats whose checkpoint could not be saved: when a summary is worth writing again (L9, I1).

A summary that is not stored is written anew by the next run, for money, while somebody waits. So after two failures in
a row the models of that chat rest. This is all the worker remembers between runs: a hash of the chat's id, a count and
a time, of a few hundred chats.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST: Final = 256
"""Chats that are remembered; the oldest marks go first."""

FIRST_REST: Final = 300.0
"""Seconds after the second failure in a row; each further one doubles them."""

LONGEST_REST: Final = 6 * 3600.0


class SaveMarks:
    """One for a worker. `now` gives seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._marks: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def may_ask(self, chat: str) -> bool:
        """Whether a summary of this chat would have a chance to be stored."""
        _, due = self._marks.get(_key(chat), (0, 0.0))
        return self._now() >= due

    def heard(self, chat: str, *, saved: bool) -> None:
        """How saving ended."""
        key = _key(chat)
        failures, _ = self._marks.pop(key, (0, 0.0))
        if saved:
            return
        rest = 0.0 if not failures else min(FIRST_REST * 2 ** min(failures - 1, 20), LONGEST_REST)
        self._marks[key] = failures + 1, self._now() + rest
        while len(self._marks) > MOST:
            self._marks.popitem(last=False)


def _key(chat: str) -> str:
    return hashlib.sha256(chat.encode("utf-8", "replace")).hexdigest()
