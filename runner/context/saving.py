"""Writing the checkpoint at the end of a run: one read, at most one write, and no row lost over a race (F6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from runner.context import checkpoint as checkpoints
from runner.context.checkpoint import Checkpoint
from runner.host.errors import HostCallFailed
from runner.host.events import Json

Load = Callable[[], Awaitable[Json]]
Store = Callable[[Json], Awaitable[None]]
Holds = Callable[[str], Awaitable[bool]]
"""The state key's own value, and whether the conversation still has the row of a cursor; all raise HostCallFailed."""


class Saving:
    """What this run read of the checkpoint, and what of its own it has written. `log` is for the bot's owner."""

    def __init__(self, base: Checkpoint | None, log: Callable[[str], None]) -> None:
        self._base = base
        self._saved: Checkpoint | None = None
        self._log = log

    def is_due(self, ours: Checkpoint | None) -> bool:
        """Whether there is anything to write."""
        return ours is not None and ours != self._base and ours != self._saved

    async def save(self, ours: Checkpoint, load: Load, store: Store, holds: Holds) -> Checkpoint | None:
        """What the run builds on from here; None where it was not stored. A failure is logged and costs a later
        summary."""
        try:
            current = checkpoints.read(await load())
            if await self._was_reset(current, ours, holds):
                self._log("context: the conversation was reset; its summary is not remembered")
            elif (merged := checkpoints.merge(self._base, current, ours)) is not None:
                ours = await self._store(merged, ours, store)
        except HostCallFailed as failure:
            self._log(f"context: the checkpoint was not saved: {failure}")
            return None
        self._saved = ours
        return ours

    async def _was_reset(self, current: Checkpoint | None, ours: Checkpoint, holds: Holds) -> bool:
        """Whether the rows of our summary are gone. What is stored tells unless there was nothing before, or another
        run has written since."""
        unsure = self._base is None or (current is not None and current != self._base)
        return unsure and ours.covers_until is not None and not await holds(ours.covers_until)

    async def _store(self, merged: Checkpoint, ours: Checkpoint, store: Store) -> Checkpoint:
        value = checkpoints.write(merged)
        await store(value)
        if merged.summary != ours.summary:
            return ours
        # The run may go on, and what it folds then builds on this.
        self._base = checkpoints.read(value) or merged
        return self._base
