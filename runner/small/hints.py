"""Advice that is given once a conversation, when its moment comes, and is in no prompt before or after (S6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from runner.host.events import Json
from runner.small.answers import Done, writes

KEY: Final = "small-hints"
"""Name among the notes of the conversation's checkpoint: the names of the hints that were given."""

LOOK_AFTER: Final = "Before you say that it is done, look once at what you wrote."
CUT_SHORT: Final = (
    "A result that says it was cut is longer than what you see: ask for less of it, or for its next part."
)

_ALL: Final = {"look-after": LOOK_AFTER, "cut-short": CUT_SHORT}


class Hints:
    """The hints of one conversation. `stored` is what earlier runs noted, of any shape; `note` keeps a new value."""

    def __init__(self, stored: Json, note: Callable[[Json], None]) -> None:
        self._given = [name for name in _ALL if isinstance(stored, list) and name in stored]
        self._note = note
        self._due: list[str] = []

    @property
    def due(self) -> str | None:
        """What is to be said with the next request; the same until `given` is told."""
        return "\n".join(_ALL[name] for name in self._due) or None

    def after(self, step: Sequence[Done], *, can_read: bool, shown: int) -> None:
        """A step of tools is over. `shown`: characters of a result that the model sees at most."""
        moments = {
            "look-after": can_read and any(writes(done) for done in step),
            "cut-short": any(len(done.body) > shown for done in step),
        }
        self._due = [name for name, come in moments.items() if come and name not in self._given]

    def given(self) -> None:
        """A model has replied to what was due."""
        if self._due:
            self._given += self._due
            self._due = []
            self._note([*self._given])
