"""One run's context: every request fitted to the budget, each compaction made once, the checkpoint kept (F2, F6, F7).

```
fit ─▶ fits by the Host's count? ──yes──▶ send
        │ no
        ▼
      plan ─▶ stubs │ older units ─▶ summary by a model, the next, or the digest ─▶ checkpoint in memory
        ▼
      count whole ─▶ still above? plan again, tighter, with the digest only ─▶ still above? InputTooLarge

fold, behind the answer ─▶ the oldest units ─▶ summary by a model, or nothing at all ─▶ checkpoint in memory
```
A request is: system message with the summary, the prompt's own turns, rows of a gap that were read and fit, what people
said last of what was folded, the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from runner.context import summary_backoff
from runner.context.budget import LEAST_WINDOW, Budget, planning_scale
from runner.context.checkpoint import Checkpoint, Gap
from runner.context.coverage import Fold, closed, folded, gap_of
from runner.context.digest import condense
from runner.context.meter import Meter
from runner.context.pictures import learn_prices, pictures_in
from runner.context.planner import WINDOW_SETTING, Fixed, Limits, Plan, foldable, is_full, plan
from runner.context.reference import bounded
from runner.context.said import as_said, newest_said, newest_turns
from runner.context.saving import Holds, Load, Saving, Store
from runner.context.summarisers import Bounds, Made, Scribes, Spent, Waiting
from runner.context.summary import MARGIN, Material, Summarise, summary_block
from runner.context.tokens import Prices, Ruler
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import (
    BETWEEN,
    Alternation,
    AssistantTurn,
    Span,
    System,
    Text,
    Unit,
    UserTurn,
    newest_user,
)
from runner.host import clock
from runner.host.errors import InputTooLarge
from runner.host.events import Json

PASSES: Final = (1.0, 0.9, 0.7)
"""Shares of the budget planned for in turn while the Host still counts too much; together they are one compaction."""

_BESIDE: Final = 0.9
"""Share of the budget that rows of a gap fill up at most: they were read to be folded, and are shown meanwhile."""

_LONG_TURN: Final = 3
"""A turn that takes more than this fraction of the budget is not expected again."""

_BYTES_PER_TOKEN: Final = 3
"""For a length that decides nothing but whether to look closer."""


@dataclass(frozen=True, slots=True)
class View:
    """What is about to be sent. `system` comes without a summary; the context adds its own.

    `opening`: turns the owner wrote in the prompt; they are never folded. `question` is the index of this run's first
    user turn. `leaving`: so many of the oldest units leave the fetch limit, to be folded behind the answer. `before`:
    units from the newest gap, older than the summary so far, to be folded with the next summary, and `before_span` the
    rows read for them (`History.older_span`; without it: from the first unit to the gap's end).
    `about_tools`: what was added to the system for tools alone.
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


def _nobody_hears(saved: bool) -> None:
    """Nobody asks."""


def _local_price(request: Request, ruler: Ruler) -> int:
    units = sum(map(ruler.unit, request.units))
    return units + ruler.system(request.system) + ruler.tools(request.tools)


@dataclass(frozen=True, slots=True)
class _Planned:
    """`summary` is the one so far, within `limit`: the Host tokens a summary may take under this budget."""

    plan: Plan
    summary: str
    limit: int


def _planned(view: View, limits: Limits, prices: Prices, summary: str, said: tuple[UserTurn, ...]) -> _Planned:
    fixed = _fixed(view, prices, said)
    limit = limits.summary_room(fixed)
    standing = condense(summary, limit, prices.text)
    summarised = prices.text(standing)
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


def _fixed(view: View, prices: Prices, said: tuple[UserTurn, ...]) -> Fixed:
    frame = prices.text(summary_block(""))
    system = prices.system(view.system) + prices.units(view.opening) + prices.units(said) + frame
    return Fixed(system, prices.tools(view.tools))


def _within(rows: Span, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """The units from the first to the last of some rows."""
    spans = [unit.span for unit in units]
    first = next(place for place, span in enumerate(spans) if span is not None and span.first == rows.first)
    last = next(place for place, span in enumerate(spans) if span is not None and span.last == rows.last)
    return tuple(unit for unit in units[first : last + 1] if unit.span is not None)


class Context:
    """One run's context. Not shared between runs.

    `checkpoint` is what the state snapshot held; `outdated`: its summary is of rows that are not there. `durable`
    False: no state or no history to read again, so nothing may be left to later runs. `unread` and `empty` come from
    reading the history (`paging.History`). `log` gets a line for the bot's owner about each compaction. `now` gives
    epoch seconds. `patience`: seconds that somebody may wait from now on for the summaries of one compaction; None: no
    limit (L6).

    May be set: `shape` makes of a request what one model is to see, and that is counted; `smaller` says whether shaping
    the same request again makes it smaller; `heard_of_saving` is told whether the checkpoint was saved.
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
        patience: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.shape: Callable[[Request, str], Request] = _as_it_is
        self.smaller: Callable[[], bool] = _no_smaller
        self.heard_of_saving: Callable[[bool], None] = _nobody_hears
        self._meter, self._ruler, self._wishes = meter, ruler, wishes
        self._now, self._log = now, log
        self._saving = Saving(checkpoint, log)
        self._limit = patience
        if checkpoint is not None and outdated:
            checkpoint = Checkpoint(windows=checkpoint.windows, notes=checkpoint.notes)
        self._checkpoint: Checkpoint | None = closed(checkpoint, empty) if checkpoint and empty else checkpoint
        self._durable, self._unread, self._empty = durable, unread, empty
        self._summary = checkpoint.summary if checkpoint else ""
        self._said = tuple(UserTurn((Text(text),)) for text in checkpoint.said) if checkpoint else ()
        self._shown: tuple[Unit, ...] | None = None
        self._held = 0
        self._scale = 1.0
        self._alternation = Alternation()
        self.spent = Spent()
        known = checkpoint.notes.get(summary_backoff.KEY) if checkpoint else None
        self._scribes = Scribes(summarisers, known, spent=self.spent, note=self.note, log=log)

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
        shown = self._shown or ()
        twice = {unit.text() for unit in shown if isinstance(unit, UserTurn)}
        said: tuple[Unit, ...] = tuple(turn for turn in self._said if turn.text() not in twice)
        held = view.units[self._held :]
        if said and held and isinstance(held[0], UserTurn):
            # Joined, words of yesterday would read like a part of today's question.
            said = (*said, BETWEEN)
        units = self._alternation.of((*view.opening, *shown, *said, *held))
        return Request(replace(view.system, summary=block), units, view.tools)

    async def fit(self, view: View, *, model: str, budget: Budget, visible: bool) -> Fitted:
        """The next request, within the budget by the Host's count. Nobody waits for a summary while it fits (L1).

        `visible`: text of this run was shown already; before that at most one compaction asks models. Raises
        InputTooLarge, CountingUnavailable, ModelFailed (the count failed for this model).
        """
        if view.before_span is not None and not view.before and self._checkpoint is not None:
            # The rows read from the gap had nothing to say.
            self._checkpoint = closed(self._checkpoint, (gap_of(view.before_span),))
        if view.before and self._shown is None:
            self._shown = await self._beside(view, budget)
        if self._unread and view.leaving and not self._held:
            # Of a long chat that is new to us rows are missing in any case: nobody waits for a few more of them.
            self._held = await self._beyond(view, budget)
        request, tokens = await self._counted(view, model, budget)
        if tokens > budget.input and self._shown:
            self._shown = ()
            request, tokens = await self._counted(view, model, budget)
        if tokens > budget.input and self._unread and view.leaving > self._held:
            await self._learn_scale(request, tokens)
            self._held = await self._beyond(view, budget)
            request, tokens = await self._counted(view, model, budget)
        if tokens <= budget.input:
            return Fitted(request, view, tokens)
        self._held = 0
        await self._learn_scale(request, tokens)
        return await self._compact(view, model=model, budget=budget, ask=visible or not self.spent.asked)

    async def _counted(self, view: View, model: str, budget: Budget) -> tuple[Request, int]:
        request = self.shape(self.request(view), model)
        tokens = await self._meter.measure(request, model=model, budget=budget)
        while tokens > budget.input and self.smaller():
            request = self.shape(self.request(view), model)
            tokens = await self._meter.measure(request, model=model, budget=budget)
        return request, tokens

    async def _beside(self, view: View, budget: Budget) -> tuple[Unit, ...]:
        """What of a gap is shown beside the summary: its newest turns, while there is room for them (L2).

        None where the window was learned from a refusal: nobody knows how much less the model takes.
        """
        if budget.narrowed:
            return ()
        free = budget.input * _BESIDE - await self._local(self.request(view)) * self._scale
        return await asyncio.to_thread(newest_turns, view.before, int(free), Prices(self._ruler, self._scale))

    async def _beyond(self, view: View, budget: Budget) -> int:
        """How many of the oldest units beyond the fetch limit are not sent, where not all of them fit."""
        leaving, recent = view.units[: view.leaving], view.units[view.leaving :]
        self._held = 0
        free = budget.input * _BESIDE - await self._local(self.request(replace(view, units=recent))) * self._scale
        sent = await asyncio.to_thread(newest_turns, leaving, int(free), Prices(self._ruler, self._scale))
        return len(leaving) - len(sent)

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
            if tokens > budget.input and self._shown:
                self._shown = ()
                request = self.shape(self.request(view), model)
                tokens = await self._meter.measure(request, model=model, budget=budget)
            if tokens <= budget.input:
                return Fitted(request, view, tokens)
            await self._learn_scale(request, tokens)
        raise InputTooLarge(self._largest(view), WINDOW_SETTING, tokens, budget.input)

    async def _learn_scale(self, request: Request, tokens: int) -> None:
        self._scale = planning_scale(tokens, await self._local(request))

    async def _local(self, request: Request) -> int:
        return await asyncio.to_thread(_local_price, request, self._ruler)

    async def _shrink(self, view: View, room: int, budget: Budget, *, ask: bool) -> View:
        prices = Prices(self._ruler, self._scale)
        limits = Limits(room, self._wishes.recent, self._wishes.summary)
        # Pricing and cutting texts takes milliseconds: not in the event loop (Q2).
        self._said = await asyncio.to_thread(newest_said, self._said, limits.said, prices)
        planned = await asyncio.to_thread(_planned, view, limits, prices, self._summary, self._said)
        self._summary, made = planned.summary, planned.plan
        shrunk = replace(view, units=made.kept, question=made.question, leaving=0, before=(), before_span=None)
        if made.older:
            shrunk = await self._summarised(view, shrunk, planned, budget, limits, ask=ask)
        self._log(f"context: {made.step}, {len(view.units)} units to {len(shrunk.units)}, {made.tokens} tokens planned")
        return shrunk

    async def _summarised(
        self, view: View, shrunk: View, planned: _Planned, budget: Budget, limits: Limits, *, ask: bool
    ) -> View:
        """The view without what a summary or a digest took in."""
        made = planned.plan
        spare = 0 if made.clipped else max(0, limits.input - made.tokens - limits.said - made.turn)
        material = Material(self._summary or None, made.older, view.before, view.before_span, durable=self._durable)
        bounds = self._bounds(planned.limit, budget, self._limit())
        written = await self._scribes.write(material, bounds, ask=ask, spare=spare)
        assert written is not None
        gone = made.older[: len(made.older) - written.kept]
        await self._adopt(written, self._said, gone, limits)
        self._shown = None
        if written.left and self._durable:
            # Nobody was told of them: they are shown while there is room, and a later run has them told.
            shrunk = replace(shrunk, before=_within(written.left[-1], gone), before_span=written.left[-1])
            self._shown = await self._beside(shrunk, budget)
        if not written.kept:
            return shrunk
        units, question = made.with_rest(written.kept)
        return replace(shrunk, units=units, question=question, leaving=max(0, view.leaving - len(gone)))

    def _bounds(self, limit: int, budget: Budget, seconds: float | None) -> Bounds:
        until = None if seconds is None else clock.now() + seconds

        def left() -> float | None:
            return None if until is None else until - clock.now()

        return Bounds(int(budget.input * MARGIN), limit, Prices(self._ruler, self._scale), left)

    def is_due(self, view: View, budget: Budget, tokens: int) -> bool:
        """Whether something should be folded behind the answer. `tokens`: of the last request, by the Host.

        Another turn like the one that ends here would not fit, or rows leave the fetch limit, or a gap was read.
        """
        if not self._durable or view.question is None or not any(unit.span for unit in (*view.before, *view.units)):
            return False
        return view.leaving > 0 or bool(view.before) or self._is_full(view, budget, tokens)

    def _is_full(self, view: View, budget: Budget, tokens: int) -> bool:
        said = (unit.text() if isinstance(unit, UserTurn) else unit.text for unit in view.units[view.question or 0 :])
        sizes = [len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN for text in said]
        answer = sizes[-1] if len(sizes) > 1 else 0
        return is_full(tokens + answer, min(sizes[0] + answer, budget.input // _LONG_TURN), budget.input)

    async def fold(
        self,
        view: View,
        budget: Budget,
        tokens: int,
        *,
        waiting: Waiting,
        seconds: float | None,
        gone: Callable[[int], None] = lambda count: None,
    ) -> bool:
        """Fold the oldest units behind the answer, by a model or not at all (L1). What each request tells is adopted at
        once and `gone` hears how many of the oldest units it was so far: a fold may be cancelled at any point. Whether
        all was told.
        """
        question = view.question or 0
        await self._learn_scale(self.request(view), tokens)
        prices = Prices(self._ruler, self._scale)
        limits = Limits(budget.input, self._wishes.recent, self._wishes.summary)
        fixed = await asyncio.to_thread(_fixed, view, prices, self._said)
        full = self._is_full(view, budget, tokens)
        count = await asyncio.to_thread(
            partial(
                foldable,
                view.units,
                question,
                fixed=fixed,
                limits=limits,
                prices=prices,
                full=full,
                leaving=view.leaving,
            )
        )
        material = Material(self._summary or None, view.units[:count], view.before, view.before_span)
        if not material.after and not material.before:
            return True
        self.spent.compactions += 1
        said = self._said

        async def adopt(made: Made) -> None:
            await self._adopt(made, said, view.units[: count - made.kept], limits)
            gone(count - made.kept)

        bounds = self._bounds(limits.summary_room(fixed), budget, seconds)
        return await self._scribes.fold(material, bounds, waiting, adopt=adopt)

    async def _adopt(self, made: Made, before: tuple[UserTurn, ...], gone: Sequence[Unit], limits: Limits) -> None:
        """`gone`: what leaves the conversation for the summary, `before`: what people had said before it.

        All is adopted at once, so that nothing is half adopted.
        """
        if self._durable and not made.told and not made.left and not gone:
            return  # of a long message only the beginning was told: it stays where it is
        turns = (*before, *as_said(gone))
        said = await asyncio.to_thread(newest_said, turns, limits.said, Prices(self._ruler, self._scale))
        self._summary, self._said = made.summary, said
        if not made.summary:
            self._log("context: no room for a summary; the older part is left out of this run")
        if not self._durable or not made.summary:
            return
        fold = Fold(made.summary, made.told, made.left, self._unread, self._empty)
        try:
            now = folded(self._checkpoint, fold, time=self._now())
        except ValueError as error:
            self._log(f"context: this compaction is not remembered: {error}")
            return
        self._checkpoint = replace(now, said=tuple(turn.text() for turn in said))
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

    async def save(self, load: Load, store: Store, holds: Holds) -> bool:
        """Write the checkpoint if it changed since it was read or saved: one read, at most one write.

        Returns whether the Host was asked for anything.
        """
        ours = self._checkpoint
        if ours is None or not self._saving.is_due(ours):
            return False
        saved: Checkpoint | None = None
        try:
            saved = await self._saving.save(ours, load, store, holds)
        finally:
            self.heard_of_saving(saved is not None)
        self._checkpoint = saved or ours
        return True
