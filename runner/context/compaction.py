"""One run's context: every request fitted to the budget, each compaction made once, the checkpoint kept (F2, F6, F7).

```
fit ─▶ fits by the Host's count? ──yes──▶ send
        │ no, or rows have to be folded
        ▼
      plan ─▶ stubs │ older units ─▶ summary by a model, the next, or the digest ─▶ checkpoint in memory
        ▼
      count whole ─▶ still above? plan again, tighter, with the digest only ─▶ still above? InputTooLarge
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from runner.context import checkpoint as checkpoints
from runner.context import summary_backoff as patience
from runner.context.budget import LEAST_WINDOW, Budget, planning_scale
from runner.context.checkpoint import Checkpoint, Gap
from runner.context.coverage import Fold, closed, folded, gap_of
from runner.context.digest import condense
from runner.context.meter import Meter
from runner.context.pictures import learn_prices, pictures_in
from runner.context.planner import WINDOW_SETTING, Fixed, Limits, Plan, plan
from runner.context.reference import bounded
from runner.context.summarisers import Bounds, Made, Scribes, Spent
from runner.context.summary import MARGIN, Material, Summarise, summary_block
from runner.context.tokens import Prices, Ruler
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import Alternation, AssistantTurn, Span, System, Unit, UserTurn, newest_user
from runner.host.errors import HostCallFailed, InputTooLarge
from runner.host.events import Json

PASSES: Final = (1.0, 0.9, 0.7)
"""Shares of the budget planned for in turn while the Host still counts too much; together they are one compaction."""

SURE: Final = 1.5
"""The local count may be wrong by this factor and the request still fits: then it needs no Host count before a fold."""


@dataclass(frozen=True, slots=True)
class View:
    """What is about to be sent. `system` comes without a summary; the context adds its own.

    `opening`: turns the owner wrote in the prompt; they are never folded. `question` is the index of this run's first
    user turn. `leaving`: so many of the oldest units leave the fetch limit. `before`: units from the newest gap, older
    than the summary so far, to be folded with the next summary, and `before_span` the rows read for them
    (`History.older_span`; without it: from the first unit to the gap's end). `about_tools`: what was added to the
    system for tools alone.
    """

    system: System
    units: tuple[Unit, ...]
    tools: tuple[ToolSpec, ...] = ()
    opening: tuple[Unit, ...] = ()
    question: int | None = None
    leaving: int = 0
    before: tuple[Unit, ...] = ()
    before_span: Span | None = None
    about_tools: tuple[str, ...] = ()

    @property
    def must_fold(self) -> bool:
        return self.leaving > 0 or bool(self.before)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request within the budget. `tokens` by the Host. `view` is what to go on from (`question` moved along)."""

    request: Request
    view: View
    tokens: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """The binding's settings: Host tokens of recent history to keep, and of a summary at most."""

    recent: int
    summary: int


def _as_it_is(request: Request, model: str) -> Request:
    return request


def _no_smaller() -> bool:
    return False


def _local_price(request: Request, ruler: Ruler) -> int:
    units = sum(map(ruler.unit, request.units))
    return units + ruler.system(request.system) + ruler.tools(request.tools)


@dataclass(frozen=True, slots=True)
class _Planned:
    """`summary` is the one so far, within `limit`: the Host tokens a summary may take under this budget."""

    plan: Plan
    summary: str
    limit: int


def _planned(view: View, limits: Limits, prices: Prices, summary: str) -> _Planned:
    frame = prices.text(summary_block(""))
    system = prices.system(view.system) + prices.units(view.opening) + frame
    fixed = Fixed(system, prices.tools(view.tools))
    limit = limits.summary_room(fixed)
    standing = condense(summary, limit, prices.text)
    summarised = limit if view.before else prices.text(standing)
    units, free = view.units, limits.input - fixed.all - summarised
    if prices.units(units) > free:
        units = bounded(units, view.question, free, prices)
    made = plan(
        units,
        fixed=fixed,
        limits=limits,
        prices=prices,
        summary=summarised,
        question=view.question,
        leaving=view.leaving,
    )
    return _Planned(made, standing, limit)


class Context:
    """One run's context. Not shared between runs.

    `checkpoint` is what the state snapshot held; `outdated`: its summary is of rows that are not there. `durable`
    False: no state or no history to read again, so nothing may be left to later runs. `unread` and `empty` come from
    reading the history (`paging.History`). `log` gets a line for the bot's owner about each compaction. `now` gives
    epoch seconds.

    May be set: `shape` makes of a request what one model is to see, and that is counted; `smaller` says whether shaping
    the same request again makes it smaller.
    """

    def __init__(
        self,
        *,
        meter: Meter,
        ruler: Ruler,
        wishes: Wishes,
        summarisers: Sequence[Summarise],
        now: Callable[[], float],
        log: Callable[[str], None],
        checkpoint: Checkpoint | None = None,
        outdated: bool = False,
        durable: bool = True,
        unread: tuple[Gap, ...] = (),
        empty: tuple[Gap, ...] = (),
    ) -> None:
        self.shape: Callable[[Request, str], Request] = _as_it_is
        self.smaller: Callable[[], bool] = _no_smaller
        self._meter, self._ruler, self._wishes = meter, ruler, wishes
        self._now, self._log = now, log
        self._base = checkpoint
        if checkpoint is not None and outdated:
            checkpoint = Checkpoint(windows=checkpoint.windows, notes=checkpoint.notes)
        self._checkpoint = closed(checkpoint, empty) if checkpoint and empty else checkpoint
        self._durable, self._unread, self._empty = durable, unread, empty
        self._summary = checkpoint.summary if checkpoint else ""
        self._saved: Checkpoint | None = None
        self._scale = 1.0
        self._alternation = Alternation()
        self.spent = Spent()
        known = checkpoint.notes.get(patience.KEY) if checkpoint else None
        self._scribes = Scribes(summarisers, known, durable=durable, spent=self.spent, note=self.note, log=log)

    @property
    def summary(self) -> str:
        """The summary so far, without its tags; empty without one."""
        return self._summary

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint as this run would write it."""
        return self._checkpoint

    def price(self, text: str) -> int:
        """About how many Host tokens a text is. Not for the event loop (see `Ruler`)."""
        return Prices(self._ruler, self._scale).text(text)

    def learn(self, model: str, refused: int) -> None:
        """A model refused a request of that many Host tokens: from the next run on that is its window (C7).

        One that refuses what every model takes teaches nothing, and what is known of it stays.
        """
        if refused >= LEAST_WINDOW:
            self._checkpoint = (self._checkpoint or Checkpoint()).learn(model, refused)

    def forget(self, model: str) -> None:
        """A model took more than its learned window holds: what it refused once was refused for another reason."""
        if self._checkpoint is not None and model in self._checkpoint.windows:
            self._checkpoint = self._checkpoint.forget(model)

    def note(self, name: str, value: Json) -> None:
        """Remember something else about the conversation, next to the summary (`Checkpoint.notes`)."""
        known = self._checkpoint or Checkpoint()
        self._checkpoint = replace(known, notes={**known.notes, name: value})

    def request(self, view: View) -> Request:
        """The view as a request, the summary as the last block of its system message."""
        block = summary_block(self._summary) if self._summary else None
        units = self._alternation.of((*view.opening, *view.units))
        return Request(replace(view.system, summary=block), units, view.tools)

    async def fit(self, view: View, *, model: str, budget: Budget, visible: bool) -> Fitted:
        """The next request, within the budget by the Host's count.

        `visible`: text of this run was shown already; before that at most one summary is asked of a model. Raises
        InputTooLarge, CountingUnavailable, ModelFailed (the count failed for this model).
        """
        if view.before_span is not None and not view.before and self._checkpoint is not None:
            # The rows read from the gap had nothing to say.
            self._checkpoint = closed(self._checkpoint, (gap_of(view.before_span),))
        request = self.shape(self.request(view), model)
        if not view.must_fold or not await self._surely_fits(request, budget):
            tokens = await self._meter.measure(request, model=model, budget=budget)
            while tokens > budget.input and self.smaller():
                request = self.shape(self.request(view), model)
                tokens = await self._meter.measure(request, model=model, budget=budget)
            if tokens <= budget.input and not view.must_fold:
                return Fitted(request, view, tokens)
            await self._learn_scale(request, tokens)
        return await self._compact(view, model=model, budget=budget, ask=visible or not self.spent.asked)

    async def _compact(self, view: View, *, model: str, budget: Budget, ask: bool) -> Fitted:
        await self._price_pictures(view, model)
        try:
            return await self._planned_to_fit(view, model=model, budget=budget, ask=ask)
        except InputTooLarge as fault:
            return await self._bare(view, fault, model=model, budget=budget)

    async def _price_pictures(self, view: View, model: str) -> None:
        """Plans know what pictures cost before they leave anything out for them (L7)."""
        asked = len(view.units) if view.question is None else view.question
        groups = (tuple(pictures_in(view.units[asked:])), tuple(pictures_in(view.units[:asked])))
        if not any(groups):
            return
        local = await self._local(self.request(view))

        def of_text(tokens: int, pictures: int) -> float:
            self._scale = planning_scale(round(self._scale * local) - tokens, local - pictures)
            return self._scale

        await learn_prices(self._ruler, groups, partial(self._meter.aside, model=model), of_text)

    async def _bare(self, view: View, fault: InputTooLarge, *, model: str, budget: Budget) -> Fitted:
        """What this run was asked, alone: plans are guesses, and nothing is refused before the Host counted it (L7).

        Raises InputTooLarge, naming what is too large by the Host's count.
        """
        asked = max(0, newest_user(view.units) if view.question is None else view.question)
        said = tuple(unit for unit in view.units[asked:] if isinstance(unit, UserTurn))
        newest = view.units[-1:] if view.units and isinstance(view.units[-1], AssistantTurn) else ()
        alone = replace(view, units=(*said, *newest), question=0, leaving=0, before=(), before_span=None)
        request = self.shape(
            Request(view.system, self._alternation.of((*view.opening, *alone.units)), view.tools), model
        )
        tokens = await self._meter.measure(request, model=model, budget=budget)
        if tokens > budget.input:
            raise InputTooLarge(self._largest(alone), WINDOW_SETTING, tokens, budget.input) from fault
        self._log("context: only the newest message is sent, since no plan fits")
        return Fitted(request, alone, tokens)

    async def _planned_to_fit(self, view: View, *, model: str, budget: Budget, ask: bool) -> Fitted:
        self.spent.compactions += 1
        tokens = 0
        for number, share in enumerate(PASSES):
            view = await self._shrink(view, int(budget.input * share), budget, ask=ask and number == 0)
            request = self.shape(self.request(view), model)
            tokens = await self._meter.measure(request, model=model, budget=budget)
            if tokens <= budget.input:
                return Fitted(request, view, tokens)
            await self._learn_scale(request, tokens)
        raise InputTooLarge(self._largest(view), WINDOW_SETTING, tokens, budget.input)

    async def _surely_fits(self, request: Request, budget: Budget) -> bool:
        # The request is counted after the fold anyway; before it the Host is only asked where the answer could matter.
        return await self._local(request) * SURE <= budget.input

    async def _learn_scale(self, request: Request, tokens: int) -> None:
        self._scale = planning_scale(tokens, await self._local(request))

    async def _local(self, request: Request) -> int:
        return await asyncio.to_thread(_local_price, request, self._ruler)

    async def _shrink(self, view: View, room: int, budget: Budget, *, ask: bool) -> View:
        prices = Prices(self._ruler, self._scale)
        limits = Limits(room, self._wishes.recent, self._wishes.summary)
        # Pricing and cutting texts takes milliseconds: not in the event loop (Q2).
        planned = await asyncio.to_thread(_planned, view, limits, prices, self._summary)
        self._summary, made = planned.summary, planned.plan
        if made.older or view.before:
            material = Material(self._summary or None, made.older, view.before, view.before_span)
            bounds = Bounds(int(budget.input * MARGIN), planned.limit, prices)
            if (summary := await self._scribes.write(material, bounds, ask=ask)) is not None:
                self._adopt(summary)
        self._log(f"context: {made.step}, {len(view.units)} units to {len(made.kept)}, {made.tokens} tokens planned")
        return replace(view, units=made.kept, question=made.question, leaving=0, before=(), before_span=None)

    def _adopt(self, made: Made) -> None:
        self._summary = made.summary
        if not made.summary:
            self._log("context: no room for a summary; the older part is left out of this run")
        if not self._durable or not made.summary:
            return
        fold = Fold(made.summary, made.told, made.left, self._unread, self._empty)
        try:
            self._checkpoint = folded(self._checkpoint, fold, time=self._now())
        except ValueError as error:
            self._log(f"context: this compaction is not remembered: {error}")
            return
        self._unread = ()

    def _largest(self, view: View) -> str:
        parts = {
            "system prompt": self._ruler.system(view.system) + sum(map(self._ruler.unit, view.opening)),
            "list of tools": self._ruler.tools(view.tools),
            "pictures": sum(map(self._ruler.part, pictures_in(view.units))),
            "newest message": sum(map(self._ruler.unit, view.units)),
        }
        parts["newest message"] -= parts["pictures"]
        return max(parts, key=lambda part: parts[part])

    async def save(
        self,
        load: Callable[[], Awaitable[Json]],
        store: Callable[[Json], Awaitable[None]],
        holds: Callable[[str], Awaitable[bool]],
    ) -> bool:
        """Write the checkpoint if it changed since it was read or saved: one read, at most one write.

        Returns whether the Host was asked for anything.

        `load` and `store` are the state key's own, `holds` tells whether the conversation still has the row of a
        cursor; a HostCallFailed of theirs is logged and costs a later summary.
        """
        ours = self._checkpoint
        if ours is None or ours == self._base or ours == self._saved:
            return False
        try:
            current = checkpoints.read(await load())
            if await self._was_reset(current, ours, holds):
                self._log("context: the conversation was reset; its summary is not remembered")
            elif (merged := checkpoints.merge(self._base, current, ours)) is not None:
                await self._store(merged, ours, store)
        except HostCallFailed as failure:
            self._log(f"context: the checkpoint was not saved: {failure}")
        else:
            self._saved = self._checkpoint
        return True

    async def _was_reset(
        self, current: Checkpoint | None, ours: Checkpoint, holds: Callable[[str], Awaitable[bool]]
    ) -> bool:
        """Whether the rows of our summary are gone. What is stored tells unless there was nothing before, or another
        run has written since."""
        unsure = self._base is None or (current is not None and current != self._base)
        return unsure and ours.covers_until is not None and not await holds(ours.covers_until)

    async def _store(self, merged: Checkpoint, ours: Checkpoint, store: Callable[[Json], Awaitable[None]]) -> None:
        value = checkpoints.write(merged)
        await store(value)
        if merged.summary == ours.summary:
            # The run may go on, and what it folds then builds on this.
            self._base = self._checkpoint = checkpoints.read(value) or merged
