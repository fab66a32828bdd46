"""How long a conversation goes on asking for summaries that no model writes, and how much it asks for at once (F5).

A person waits for every summary. A model that never manages one must not cost that in each run, and one on a slow
machine, that does not begin to answer a long request in the time the SDK waits, may well do with a shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from runner.host.events import Json

KEY: Final = "summaries"
"""Name among the notes of the conversation's checkpoint."""

LEAST_ROOM: Final = 1_500
"""Tokens of a summary request below which nothing is gained by asking for less."""

_LONGEST_REST: Final = 15
_MOST_ROOM: Final = 100_000


@dataclass(frozen=True, slots=True)
class Patience:
    """`failed`: compactions in a row for which no model wrote a summary; `rest`: so many more go without asking.

    `room`: tokens a summary request may take since a larger one took too long or was refused; None: only the budget's
    limit. `hung`: somebody waited for a summary in vain; in the next run nobody does (L6).
    """

    failed: int = 0
    rest: int = 0
    room: int | None = None
    hung: bool = False

    def limited(self, room: int) -> int:
        """Of the tokens a summary request might take, those it may."""
        return room if self.room is None else min(room, self.room)

    def rested(self) -> Patience:
        """One compaction went without asking."""
        return replace(self, rest=max(0, self.rest - 1))

    def succeeded(self) -> Patience:
        """A model wrote one: nothing is held against the models, and the next may be asked for twice as much."""
        if self.room is None or self.room >= _MOST_ROOM:
            return Patience()
        return Patience(room=2 * self.room)

    def disappointed(self, *, hung: bool = False) -> Patience:
        """No model wrote one. The first time may be chance; then the rests grow to 1, 3, 7 and 15 compactions."""
        failed = self.failed + 1
        return replace(self, failed=failed, rest=min(2 ** min(failed - 1, 10) - 1, _LONGEST_REST), hung=hung)

    def was_too_much(self, tokens: int) -> Patience:
        """A model did not answer a request for so many tokens in time, or refused its length: half from now on."""
        return replace(self, room=max(LEAST_ROOM, self.limited(tokens) // 2))

    def written(self) -> Json:
        written: dict[str, Json] = {"failed": self.failed, "rest": self.rest, "room": self.room}
        return {**written, "hung": True} if self.hung else written


def read(stored: Json) -> Patience:
    """A stored value of any shape: what is not ours is ignored."""
    if not isinstance(stored, dict):
        return Patience()
    failed, rest, room = (_count(stored.get(name)) for name in ("failed", "rest", "room"))
    room = None if room is None else max(LEAST_ROOM, room)
    return Patience(failed or 0, min(rest or 0, _LONGEST_REST), room, hung=stored.get("hung") is True)


def _count(value: Json) -> int | None:
    # True is an int to Python and no count to anyone.
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9 else None
