"""Folding the conversation behind its answer, where nobody waits for it (L1).

```
the whole text stands in a delta ─▶ is a fold due? ─▶ who waits? ─▶ fold ─▶ checkpoint ─▶ message.completed
                                                       │             └ a follow-up: the fold ends, the run goes on
                                                       └ the Host shows texts: nobody. Else somebody may see nothing
                                                         before the end: two seconds, once in ten messages
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from runner.channel.answering import Answering
from runner.channel.host_progress import caught_up
from runner.context.checkpoint import order
from runner.context.compaction import View
from runner.context.summarisers import Waiting
from runner.conversation.units import UserTurn
from runner.host import clock
from runner.host.cancellation import closed
from runner.host.events import Json, Log
from runner.run.setup import Parts, Surroundings

KEY: Final = "late_fold"
"""Name among the notes of the conversation's checkpoint: when a message last came late for a fold."""

PULL_SECONDS: Final = 1.0
"""So often people are listened to meanwhile."""

_SHARE: Final = 1 / 3
"""Of the time left, what a fold may take."""

_LATE_SECONDS: Final = 1.5
"""What it may take where somebody may be waiting for the message; with what is saved then, below two seconds."""

_EVERY: Final = 10
"""Messages of people from one that came late to the next that may, at least."""

_MOST_MISSED: Final = 3
_LETTING_GO: Final = 0.2
_SHOWING_LIMIT: Final = 1.5


@dataclass(frozen=True, slots=True)
class Late:
    """`row`: cursor of the newest row before the last message that came late; `missed`: folds in a row for which two
    seconds were too short."""

    row: str = ""
    missed: int = 0

    def allows(self, view: View) -> bool:
        """Whether another message may come late: so many were written since."""
        if not self.row:
            return True
        spans = [unit.span for unit in view.units if isinstance(unit, UserTurn) and unit.span is not None]
        try:
            count = sum(order(span.first) > order(self.row) for span in spans)
        except ValueError:
            return False
        return count >= _EVERY << min(self.missed, _MOST_MISSED)

    def again(self, view: View, *, whole: bool) -> Late:
        """After one more of them."""
        rows = [unit.span.last for unit in view.units if unit.span is not None]
        return Late(rows[-1] if rows else self.row, 0 if whole else self.missed + 1)

    def written(self) -> Json:
        return {"row": self.row, "missed": self.missed}


def read(stored: Json) -> Late:
    """A stored value of any shape: what is not ours is ignored."""
    if not isinstance(stored, dict):
        return Late()
    row, missed = stored.get("row"), stored.get("missed")
    count = missed if isinstance(missed, int) and not isinstance(missed, bool) and missed >= 0 else 0
    return Late(row if isinstance(row, str) else "", count)


class LateFold:
    """The fold of one run. `model`: id of the model that answers. `known`: what `KEY` holds."""

    def __init__(self, around: Surroundings, parts: Parts, model: Callable[[], str], known: Json) -> None:
        self._around = around
        self._parts = parts
        self._model = model
        self._late = read(known)
        self._left: set[asyncio.Task[bool]] = set()

    def is_due(self) -> bool:
        """Whether something should be folded before the run ends: not twice in one run, nor where a model has just
        refused a request for its size, since nobody knows yet what it takes."""
        context, view = self._parts.context, self._parts.view
        budget = view.budget(self._model())
        return not context.spent.asked and budget.cap is None and context.is_due(view.standing, budget, view.tokens)

    async def run(self, mark: int | None) -> UserTurn | None:
        """Fold, as long as that may take. What somebody said meanwhile ends it and is returned.

        `mark`: the place, among the results of the run, of one behind the whole text; None: no text is shown.
        """
        waiting = await self._waiting(mark)
        view = self._parts.view.standing
        if waiting is Waiting.ANSWERED and not self._late.allows(view):
            return None
        seconds = self._around.deadline.share(clock.now(), _SHARE)
        if waiting is Waiting.ANSWERED:
            seconds = min(_LATE_SECONDS, _LATE_SECONDS if seconds is None else seconds)
        folding = asyncio.create_task(self._fold(view, waiting, seconds))
        try:
            return await self._listening(folding, None if seconds is None else clock.now() + seconds)
        finally:
            whole = folding.done() and not folding.cancelled() and folding.exception() is None and folding.result()
            if waiting is Waiting.ANSWERED:
                self._parts.context.note(KEY, self._late.again(view, whole=whole).written())
            folding.cancel()
            self._left.add(folding)
            await asyncio.wait({folding}, timeout=_LETTING_GO)

    async def closed(self) -> None:
        """Wait until a fold that was left has ended."""
        for folding in self._left:
            await closed(folding)

    async def _listening(self, folding: asyncio.Task[bool], until: float | None) -> UserTurn | None:
        while not folding.done():
            left = PULL_SECONDS if until is None else min(PULL_SECONDS, until - clock.now())
            if left <= 0:
                return None
            await asyncio.wait({folding}, timeout=left)
            if not folding.done() and (said := await self._parts.steering.pull()) is not None:
                return said
        return None

    async def _fold(self, view: View, waiting: Waiting, seconds: float | None) -> bool:
        """Whether all was folded. A failure here costs a later fold, never the answer (Q4)."""
        run_view = self._parts.view

        def gone(count: int) -> None:
            question = None if view.question is None else view.question - count
            leaving = max(0, view.leaving - count)
            run_view.go_on_from(replace(view, units=view.units[count:], question=question, leaving=leaving))

        try:
            return await self._parts.context.fold(
                view,
                run_view.budget(self._model()),
                run_view.tokens,
                waiting=waiting,
                seconds=seconds,
                gone=gone,
            )
        except Exception as fault:  # noqa: BLE001 - the answer stands, and nothing may keep it from its end (Q4)
            self._around.warn(f"context: the conversation was not folded: {type(fault).__name__}")
            return False

    async def _waiting(self, mark: int | None) -> Waiting:
        """Who waits. The Host does not say whether it shows texts as they come: where it takes much longer for one than
        for a line of the log, it does."""
        delivery = self._around.delivery
        if delivery.answering is Answering.HOST:
            shows = mark is not None and await self._shows(mark)
        else:
            shows = delivery.is_done
        return Waiting.NOBODY if shows else Waiting.ANSWERED

    async def _shows(self, mark: int) -> bool:
        around = self._around
        if not around.ctx.context.available_apis.run_events_page:
            return False
        until = clock.now() + _SHOWING_LIMIT
        if await caught_up(around.host, mark, until=until) < 2:
            return False
        line = around.outbox.post_marked(Log("context: the answer stands; the conversation is folded", "debug"))
        return await caught_up(around.host, line, until=clock.now() + _SHOWING_LIMIT) == 1
