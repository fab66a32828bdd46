"""Who writes the summary of a compaction: one model or the next, or the digest; and when no model is asked (F5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runner.context import summary_backoff as patience
from runner.context.coverage import stretch
from runner.context.digest import NEW_PART, digest
from runner.context.identifiers import is_short, with_identifiers
from runner.context.overflow import Overflow, recognise
from runner.context.summary import Draft, Material, Refusal, Summarise, SummaryReply, draft, judge
from runner.context.tokens import Prices
from runner.conversation.units import Span
from runner.host.errors import ModelFailed, ModelTrouble
from runner.host.events import Json

LEAST_SUMMARY: Final = 40
"""Host tokens below which a summary is not worth its place."""


@dataclass
class Spent:
    """What compaction cost in this run."""

    compactions: int = 0
    asked: int = 0
    summaries: int = 0
    digests: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Host tokens: `room` for the summary request, `limit` for the summary."""

    room: int
    limit: int
    prices: Prices


@dataclass(frozen=True, slots=True)
class Made:
    """A summary, the rows that stand in it, and those that left the conversation without."""

    summary: str
    told: tuple[Span, ...]
    left: tuple[Span, ...]


class Scribes:
    """The models that may be asked for a summary, in their order; the digest stands in for them.

    `known` is what `note` kept of them in earlier runs under `patience.KEY`. `durable` False: units that no transcript
    holds are told as a digest, because nobody could read them again. `spent` counts along, `log` gets a line for the
    bot's owner.
    """

    def __init__(
        self,
        models: Sequence[Summarise],
        known: Json,
        *,
        durable: bool,
        spent: Spent,
        note: Callable[[str, Json], None],
        log: Callable[[str], None],
    ) -> None:
        self._models = tuple(models)
        self._patience = patience.read(known)
        self._durable = durable
        self._spent = spent
        self._note = note
        self._log = log

    async def write(self, material: Material, bounds: Bounds, *, ask: bool) -> Made | None:
        """The summary of some units; None where there is nothing newer than the one so far, and no model wrote it.

        `ask` False: only the digest.
        """
        made = await self._patiently(material, bounds) if ask and bounds.limit >= LEAST_SUMMARY else None
        if made is None and material.after:
            made = await asyncio.to_thread(_digested, material, bounds)
            self._spent.digests += 1
        return made

    async def _patiently(self, material: Material, bounds: Bounds) -> Made | None:
        """Ask the models, unless they have failed so often that this compaction goes without."""
        before, resting = self._patience, self._patience.rest > 0
        made = None
        if resting:
            self._log(f"context: no model is asked for a summary after {before.failed} failures")
            self._patience = before.rested()
        elif self._models:
            asked = self._spent.asked
            made = await self._ask(material, replace(bounds, room=before.limited(bounds.room)))
            if made is not None:
                self._patience = self._patience.succeeded()
            elif self._spent.asked > asked:
                self._patience = self._patience.disappointed()
        if self._patience != before:
            self._note(patience.KEY, self._patience.written())
        return made

    async def _ask(self, material: Material, bounds: Bounds) -> Made | None:
        room, limit, prices = bounds.room, bounds.limit, bounds.prices
        for summarise in self._models:
            asked = await asyncio.to_thread(
                draft, material, room=room, limit=limit, prices=prices, keep_all=not self._durable
            )
            if not asked.after.told and not asked.before.told:
                return None
            self._spent.asked += 1
            try:
                reply = await summarise(asked.request)
            except ModelFailed as failure:
                self._log(f"context: no summary: {failure}")
                if failure.cause is ModelTrouble.TIMEOUT or _was_too_long(failure):
                    self._patience = self._patience.was_too_much(asked.replaced)
                    room = self._patience.limited(room)
                continue
            judged = await asyncio.to_thread(_judged, reply, asked, material, bounds)
            if not isinstance(judged, Refusal):
                self._spent.summaries += 1
                return _made(await asyncio.to_thread(_completed, judged, asked, material, bounds), asked, material)
            self._log(f"context: a summary was refused: {judged}")
        return None


def _judged(reply: SummaryReply, asked: Draft, material: Material, bounds: Bounds) -> str | Refusal:
    return judge(
        reply,
        replaced=asked.replaced,
        previous=material.previous,
        limit=bounds.limit,
        prices=bounds.prices,
        told=asked.told,
    )


def _made(summary: str, asked: Draft, material: Material) -> Made:
    before = stretch(asked.before.told)
    if before and material.before_span is not None:
        first = before[0].first if asked.before.left else material.before_span.first
        before = (Span(first, material.before_span.last),)
    return Made(summary, (*before, *stretch(asked.after.told)), stretch(asked.after.left))


def _completed(summary: str, asked: Draft, material: Material, bounds: Bounds) -> str:
    """A model's summary with what it forgot; without it where that would save nothing any more."""
    price = bounds.prices.text
    whole = with_identifiers(
        summary,
        previous=material.previous,
        told=asked.told,
        limit=bounds.limit,
        price=price,
        short=is_short(summary, asked.replaced, price),
    )
    return whole if price(whole) < asked.replaced else summary


def _digested(material: Material, bounds: Bounds) -> Made:
    text = digest(material.after, previous=material.previous, limit=bounds.limit, price=bounds.prices.text)
    rows = stretch(material.after)
    # A digest of much drops most of it: those rows stay in the gap until a model has read them.
    whole = bounds.prices.units(material.after) <= bounds.limit * NEW_PART
    return Made(text, rows if whole else (), () if whole else rows)


def _was_too_long(failure: ModelFailed) -> bool:
    """Only the Host's or a provider's own words count: the size of a summary request is not known to it (F5)."""
    said = recognise(failure.text, counted=0, window=1) is Overflow.SAID
    return said or failure.cause is ModelTrouble.OVERFLOW
