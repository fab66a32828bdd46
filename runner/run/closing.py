"""What a run has to settle before its last words: files, memory, checkpoint, follow-ups (B6, D5, F6, G1, H3)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from runner.channel.host_progress import caught_up
from runner.context import checkpoint as checkpoints
from runner.context.past import holds_row
from runner.conversation.units import UserTurn
from runner.host import clock
from runner.host.errors import HostCallFailed
from runner.host.events import Json, Log
from runner.run.late_fold import LateFold
from runner.run.setup import Parts, Surroundings

_SAVE_LIMIT = 1.5
"""Seconds that saving the checkpoint may take when a run has failed: less than what is left before the Host's end."""

_COLLECT_LIMIT = 60.0
"""Seconds that fetching files out of the sandbox may keep the finished answer waiting."""

_BUSY_COLLECT_LIMIT = 5.0
"""The same while a call goes on as a job: a sandbox takes one command at a time, and may still be at that one (S4)."""

_CATCH_UP_LIMIT = 1.5
"""Seconds that showing the answer may keep the run open: a Host slower than that is not waited for."""

_STANDS = Log("context: the answer stands", "debug")
"""Behind the whole text: once the Host has come to this, it has shown it."""


class Closing:
    """Settles one run. A failure here costs memory, never the answer (Q4)."""

    def __init__(self, around: Surroundings, parts: Parts, late: LateFold) -> None:
        self._around = around
        self._parts = parts
        self._late = late
        self._deadline = around.deadline
        self._saving = False

    async def settle(
        self, lines: Callable[[], Sequence[Log]], *, silent: bool, wordless: bool, folds: bool
    ) -> UserTurn | None:
        """Everything that comes before the last look for follow-ups, the log included (G1).

        `lines` tell what the run came to. `silent`: the tools asked to end here; `wordless`: nothing will be sent, so
        the record cannot ride on it (D5). `folds`: the conversation may be folded behind the answer. What somebody said
        meanwhile is returned, and the run goes on (L1).
        """
        folds = folds and self._late.is_due()
        mark = self._around.outbox.flush(*([_STANDS] if folds else lines()))
        if not silent or self._around.visible.shown:
            await self._around.sandbox.collect(self._collect_until())
        try:
            if wordless:
                await self._parts.memory.put_aside(self._around.host)
            else:
                await self._parts.memory.settle(self._around.host)
        except HostCallFailed as failure:
            self._around.warn(f"the record of tools could not be kept: {failure}")
        if folds and (said := await self._late.run(mark)) is not None:
            return said
        saved = await self._save_checkpoint()
        if folds:
            for line in lines():
                self._around.outbox.post(line)
        elif mark is not None and not saved and self._may_wait_for_the_host():
            until = min(clock.now() + _CATCH_UP_LIMIT, self._latest())
            await caught_up(self._around.host, mark, until=until)
        return None

    async def closed(self) -> None:
        """Leave no fold behind."""
        await self._late.closed()

    def _may_wait_for_the_host(self) -> bool:
        """Where files were fetched, as where a checkpoint was saved, showing the text took no longer (Q1)."""
        apis = self._around.ctx.context.available_apis
        return apis.steering_pull and apis.run_events_page and not self._around.sandbox.collected.file_ids

    async def save_what_was_learned(self) -> None:
        """After a failure too: the size a model refused is its window from now on (C7). Bounded in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_LIMIT):
                await self._save_checkpoint()

    async def keep_what_was_done(self) -> None:
        """After a failure without an answer: the finished calls are kept for the run that is asked next (B6, S3)."""
        with suppress(TimeoutError, HostCallFailed):
            async with asyncio.timeout(_SAVE_LIMIT):
                await self._parts.memory.put_aside(self._around.host)

    async def name_what_stays_open(self, *, look: bool) -> None:
        """What was said to a run that cannot answer any more is named in the log (G1). `look`: ask once more first."""
        steering = self._parts.steering
        if look:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAVE_LIMIT):
                    await steering.pull()
        if steering.unanswered:
            self._around.warn(f"{steering.unanswered} follow-up message(s) were taken and not answered")

    def record(self) -> Mapping[str, Json] | None:
        """The private record for the final message: what tools said, and in a group who is who (B6)."""
        speakers = self._parts.steering.speakers
        return self._parts.memory.record(speakers.names if speakers.group else {})

    async def _save_checkpoint(self) -> bool:
        """Whether the Host was asked (F6): not when nothing was learned since, nor after a save that hung."""
        if self._saving or not self._around.ctx.context.available_apis.state:
            return False
        self._saving = True
        host = self._around.host
        asked = await self._parts.context.save(
            partial(host.get_state, checkpoints.KEY),
            partial(host.set_state, checkpoints.KEY),
            partial(holds_row, host),
        )
        self._saving = False
        return asked

    def _collect_until(self) -> float:
        limit = _BUSY_COLLECT_LIMIT if self._parts.jobs.without_result else _COLLECT_LIMIT
        return min(clock.now() + limit, self._latest())

    def _latest(self) -> float:
        """When the last words have to go out, whatever is not settled by then."""
        return math.inf if self._deadline.end is None else self._deadline.end - _SAVE_LIMIT
