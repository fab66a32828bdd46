"""Who writes the summary of a compaction: one model or the next, or the digest; and when no model is asked (F5, L6).

```
older units: left out │ told ────────────────────────────│ stay
             into a gap  one request; more where one unit is   while there is room for them
             (too much)  longer than a request, in pieces
                         │ no model writes a summary
                         └▶ digest of all that has to go; its rows stay in a gap
```
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from runner.context import summary_backoff as patience
from runner.context.coverage import stretch
from runner.context.digest import NEW_PART, digest
from runner.context.identifiers import is_short, with_identifiers
from runner.context.overflow import Overflow, recognise
from runner.context.pieces import in_pieces
from runner.context.summary import Draft, Material, Refusal, Summarise, SummaryReply, draft, judge, piece_room
from runner.context.tokens import Prices
from runner.conversation.units import Span, Unit, UserTurn
from runner.host.errors import ModelFailed, ModelTrouble
from runner.host.events import Json

LEAST_SUMMARY: Final = 40
"""Host tokens below which a summary is not worth its place."""

_LONG: Final = 4
"""A message of so many pieces is told even where that takes more than one request."""

_LEAST_SECONDS: Final = 0.3
"""Nobody writes a summary in less."""


class Waiting(Enum):
    """Who waits for a summary: somebody with a question, somebody with the whole answer but for its end, nobody."""

    QUESTION = "question"
    ANSWERED = "answered"
    NOBODY = "nobody"


@dataclass
class Spent:
    """What compaction cost in this run."""

    compactions: int = 0
    asked: int = 0
    summaries: int = 0
    digests: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Host tokens: `room` for a summary request, `limit` for the summary. `seconds`: what is left now of the time that
    all requests of this compaction have together; None: no limit."""

    room: int
    limit: int
    prices: Prices
    seconds: Callable[[], float | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Made:
    """A summary, the rows that stand in it, and those that left the conversation without. `kept`: so many of the newest
    units of `Material.after` stay in the conversation. `whole`: nothing of the material is left to be told."""

    summary: str
    told: tuple[Span, ...]
    left: tuple[Span, ...] = ()
    kept: int = 0
    whole: bool = False

    def fits(self, material: Material, spare: int, bounds: Bounds) -> bool:
        """Whether what is not told yet takes at most `spare` Host tokens of the conversation."""
        return bounds.prices.units(material.after[len(material.after) - self.kept :]) <= spare


@dataclass(slots=True)
class _Telling:
    """How far a compaction has come: what is still to be told, as pieces, and which unit each of `after` is of. `left`:
    so many of the oldest units are not told at all."""

    material: Material
    left: int
    after: tuple[Unit, ...]
    origins: tuple[int, ...]
    before: tuple[Unit, ...]
    summary: str | None
    folded: tuple[Span, ...] = ()

    @property
    def stays_from(self) -> int:
        """The oldest unit that stays: nothing of the turn of a person that begins there has to go."""
        after = self.material.after
        place = self.origins[0] if self.origins else len(after)
        while self.left < place < len(after) and not _begins(after[place]):
            place -= 1
        return place

    def rest(self) -> Material:
        return Material(self.summary, self.after, self.before, shortened=self.material.shortened)

    def goes_on(self, summary: str, asked: Draft) -> Made:
        """What a summary makes of it."""
        count = len(asked.after.told)
        self.after, self.origins, self.summary = asked.after.left, self.origins[count:], summary
        before = stretch(asked.before.told)
        self.before = asked.before.left
        if before and (span := self.material.before_span) is not None:
            # Rows that made no unit lie before the oldest and behind the newest one.
            before = (Span(before[0].first if self.before else span.first, span.last),)
        self.folded = before or self.folded
        stays, units = self.stays_from, self.material.after
        return Made(
            summary,
            (*self.folded, *stretch(units[self.left : stays])),
            stretch(units[: self.left]),
            len(units) - stays,
            whole=not (self.after or self.before),
        )


def _begins(unit: Unit) -> bool:
    """Whether a conversation may be cut before a unit: where a person speaks, or between the steps of this run."""
    return isinstance(unit, UserTurn) or unit.span is None


Adopt = Callable[[Made], Awaitable[None]]


class Scribes:
    """The models that may be asked for a summary, in their order; the digest stands in for them.

    `known` is what `note` kept of them in earlier runs under `patience.KEY`. `spent` counts along, `log` gets a line
    for the bot's owner.
    """

    def __init__(
        self,
        models: Sequence[Summarise],
        known: Json,
        *,
        spent: Spent,
        note: Callable[[str, Json], None],
        log: Callable[[str], None],
    ) -> None:
        self._models = tuple(models)
        self._patience = patience.read(known)
        self._spent = spent
        self._note = note
        self._log = log
        self._timed_out = False
        self._replaced = 0
        self._rests = self._patience.hung
        if self._rests:
            self._remember(replace(self._patience, hung=False))

    async def write(self, material: Material, bounds: Bounds, *, ask: bool, spare: int = 0) -> Made | None:
        """The summary of some units while somebody waits; None where there is nothing newer than the one so far, and no
        model wrote it.

        `ask` False: only the digest. `spare`: so many Host tokens of the newest units may stay in the conversation.
        """
        asks = ask and not self._rests and bounds.limit >= LEAST_SUMMARY
        made = await self._patiently(material, bounds, Waiting.QUESTION, spare) if asks else None
        if not material.after or (made is not None and made.fits(material, spare, bounds)):
            return made
        self._spent.digests += 1
        return await asyncio.to_thread(_digested, material, made, bounds)

    async def fold(self, material: Material, bounds: Bounds, waiting: Waiting, *, adopt: Adopt) -> bool:
        """The summary of units that need not go yet: by a model or not at all. `adopt` gets what each request makes of
        it, so that one that is cut short has folded what was told. Whether all was told.
        """
        if bounds.limit < LEAST_SUMMARY or (self._rests and waiting is not Waiting.NOBODY):
            return False
        made = await self._patiently(material, bounds, waiting, None, adopt)
        return made is not None and made.whole

    async def _patiently(
        self,
        material: Material,
        bounds: Bounds,
        waiting: Waiting,
        spare: int | None,
        adopt: Adopt | None = None,
    ) -> Made | None:
        """Ask the models, unless they have failed so often that this compaction goes without."""
        if not self._may_ask():
            return None
        if self._patience.rest > 0:
            self._log(f"context: no model is asked for a summary after {self._patience.failed} failures")
            self._remember(self._patience.rested())
            return None
        before, asked = self._patience, self._spent.asked
        bounds = replace(bounds, room=before.limited(bounds.room))
        made = await self._told(material, bounds, spare, adopt)
        if self._timed_out and waiting is Waiting.ANSWERED:
            return made  # two seconds say nothing about a model
        after = self._patience
        if made is not None and not self._timed_out:
            after = after.succeeded()
        elif self._spent.asked > asked:
            after = after.disappointed(hung=self._timed_out and waiting is Waiting.QUESTION)
            if waiting is not Waiting.QUESTION and not self._timed_out:
                # No digest takes its place: less at once may do, or the same would be refused again.
                after = after.was_too_much(self._replaced)
        if after != before:
            self._remember(after)
        return made

    def _may_ask(self) -> bool:
        """After a time-out no other model is asked in this run (L6)."""
        return bool(self._models) and not self._timed_out

    def _remember(self, now: patience.Patience) -> None:
        self._patience = now
        self._note(patience.KEY, now.written())

    async def _told(self, material: Material, bounds: Bounds, spare: int | None, adopt: Adopt | None) -> Made | None:
        """One request, and further ones until what is left may stay, or nobody writes one.

        `spare` None: nothing has to go, so it is enough that any row was told.
        """
        telling = await asyncio.to_thread(_begin, material, bounds, spare)
        made: Made | None = None
        while telling.after or telling.before:
            asked = await asyncio.to_thread(
                draft, telling.rest(), room=bounds.room, limit=bounds.limit, prices=bounds.prices
            )
            summary = await self._ask(asked, telling.summary, bounds) if asked.told else None
            if summary is None:
                break
            made = telling.goes_on(summary, asked)
            if adopt is not None:
                await adopt(made)
            if made.told if spare is None else made.fits(material, spare, bounds):
                break
        return made

    async def _ask(self, asked: Draft, previous: str | None, bounds: Bounds) -> str | None:
        """What the first model makes of a request that makes anything of it."""
        for summarise in self._models:
            seconds = bounds.seconds()
            if seconds is not None and seconds < _LEAST_SECONDS:
                return None
            self._spent.asked += 1
            self._replaced = asked.replaced
            try:
                reply = await _in_time(summarise, asked, seconds)
            except ModelFailed as failure:
                self._log(f"context: no summary: {failure}")
                self._timed_out = failure.cause is ModelTrouble.TIMEOUT
                if self._timed_out or _was_too_long(failure):
                    self._patience = self._patience.was_too_much(asked.replaced)
                if self._timed_out:
                    return None
                continue
            judged = await asyncio.to_thread(_judged, reply, asked, previous, bounds)
            if not isinstance(judged, Refusal):
                self._spent.summaries += 1
                return await asyncio.to_thread(_completed, judged, asked, previous, bounds)
            self._log(f"context: a summary was refused: {judged}")
        return None


async def _in_time(summarise: Summarise, asked: Draft, seconds: float | None) -> SummaryReply:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await summarise(asked.request)
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise ModelFailed("summary", ModelTrouble.TIMEOUT, f"nothing whole within {seconds:.0f} s") from error


def _begin(material: Material, bounds: Bounds, spare: int | None) -> _Telling:
    room = piece_room(bounds.room, bounds.limit, bounds.prices)
    pieces, origins = in_pieces(material.after, room, bounds.prices)
    before, _ = in_pieces(material.before, room, bounds.prices, newest=True)
    left = 0 if spare is None else _too_much(material, pieces, origins, bounds, spare)
    skipped = sum(origin < left for origin in origins)
    if lost := tuple(unit for unit in material.after[:left] if _is_lost(unit, material)):
        shortened = digest(lost, previous=None, limit=room, price=bounds.prices.text)
        material = replace(material, shortened=shortened)
    return _Telling(material, left, pieces[skipped:], origins[skipped:], before, material.previous)


def _is_lost(unit: Unit, material: Material) -> bool:
    """Whether nobody could read a unit again."""
    return not material.durable or unit.span is None


def _too_much(
    material: Material, pieces: tuple[Unit, ...], origins: tuple[int, ...], bounds: Bounds, spare: int
) -> int:
    """How many of the oldest units can neither be told by one request nor stay: what is told lies before what stays."""
    stays = len(material.after)
    while stays and spare >= (price := bounds.prices.unit(material.after[stays - 1])):
        spare, stays = spare - price, stays - 1
    while stays < len(material.after) and not _begins(material.after[stays]):
        stays += 1
    going = pieces[: sum(origin < stays for origin in origins)]
    rest, room = replace(material, after=going, before=()), bounds.room
    if any(_is_lost(unit, material) for unit in material.after[:stays]):
        room -= piece_room(room, bounds.limit, bounds.prices)
    asked = draft(rest, room=room, limit=bounds.limit, prices=bounds.prices, newest=True)
    if not asked.after.left:
        return 0
    last = origins[len(asked.after.left) - 1]
    # A message that takes most of a request, or more than one, is told in several.
    return last if origins.count(last) >= _LONG else min(last + 1, stays - 1)


def _judged(reply: SummaryReply, asked: Draft, previous: str | None, bounds: Bounds) -> str | Refusal:
    return judge(
        reply,
        replaced=asked.replaced,
        previous=previous,
        limit=bounds.limit,
        prices=bounds.prices,
        told=asked.told,
    )


def _completed(summary: str, asked: Draft, previous: str | None, bounds: Bounds) -> str:
    """A model's summary with what it forgot; without it where that would save nothing any more."""
    price = bounds.prices.text
    whole = with_identifiers(
        summary,
        previous=previous,
        told=asked.told,
        limit=bounds.limit,
        price=price,
        short=is_short(summary, asked.replaced, price),
    )
    return whole if price(whole) < asked.replaced else summary


def _digested(material: Material, made: Made | None, bounds: Bounds) -> Made:
    """What no model told, as a digest behind what one did tell."""
    rest = material.after[len(material.after) - made.kept :] if made else material.after
    previous, told = (made.summary, made.told) if made else (material.previous, ())
    text = digest(rest, previous=previous, limit=bounds.limit, price=bounds.prices.text)
    rows = stretch(rest)
    gone = made.left if made else ()
    # A digest of much drops most of it: those rows stay in the gap until a model has read them.
    whole = bounds.prices.units(rest) <= bounds.limit * NEW_PART
    return Made(text, (*told, *rows) if whole else told, gone if whole else (*gone, *rows))


def _was_too_long(failure: ModelFailed) -> bool:
    """Only the Host's or a provider's own words count: the size of a summary request is not known to it (F5)."""
    said = recognise(failure.text, counted=0, window=1) is Overflow.SAID
    return said or failure.cause is ModelTrouble.OVERFLOW
