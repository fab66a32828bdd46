"""The models of one run at work: providers by id, what they used, and who may write a summary (C1, C5, F5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from runner.conversation.call_ids import CallIds
from runner.conversation.request import Request
from runner.conversation.wire import Wire
from runner.host.errors import ModelFailed, ModelTrouble
from runner.host.events import Json, Usage
from runner.host.port import Host
from runner.models.fallback_order import Lineup
from runner.models.habits import Habits
from runner.models.provider import HostModel
from runner.models.refusals import Refusals, Step, steps_against
from runner.models.reply import Reply, ReplyReader

Writer = Callable[[Request, Callable[[str], bool], float | None], Awaitable[Reply]]
"""Asks one model for a text nobody watches. It is left where the second argument says so of a fragment; it fails after
so many seconds, None is no limit. Raises ModelFailed."""


class Bench:
    """All models of a run over one wire. Calls are made one after another: two at once would mix up their usage.

    `ids` names the calls of the run; `habits` is what is known of its models, set once the conversation was read;
    `refusals` what they did not take.
    """

    def __init__(self, host: Host, lineup: Lineup, *, remove_think: bool, now: Callable[[], float] = time.time) -> None:
        self.lineup = lineup
        self.habits = Habits(None, _kept_nowhere)
        self.ids = CallIds(wants_numbers=lambda model: self.habits.of(model).numbered_ids, saw=self._saw_ids)
        self.refusals = Refusals(lambda: self.habits, now)
        self._wire = Wire(self.ids, lambda model: self.habits.of(model).thinks)
        self._models = {
            ref.id: HostModel(
                host, ref, self._wire, self.refusals, remove_think=remove_think, saw_thoughts=self._saw_thoughts
            )
            for ref in lineup.models
        }
        self.usage: Usage | None = None

    @property
    def current(self) -> HostModel:
        """The model that answers."""
        return self._models[self.lineup.current.id]

    async def count(self, model_id: str, request: Request) -> int:
        """Input tokens of a request for one model. Raises HostCallFailed."""
        return await self._models[model_id].count(request)

    def add_usage(self, usage: Usage | None) -> None:
        """Count the tokens of one call; None means the provider did not say."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def _saw_ids(self, model_id: str, numbered: bool) -> None:
        self.habits.learn(model_id, replace(self.habits.of(model_id), numbered_ids=numbered))

    def _saw_thoughts(self, model_id: str) -> None:
        self.habits.learn(model_id, replace(self.habits.of(model_id), thinks=True))

    def writers(self) -> Sequence[Writer]:
        """Who may be asked for a text nobody watches: the answering model, then its fallbacks."""
        return [self._writer(place) for place in range(len(self.lineup.models))]

    def _writer(self, place: int) -> Writer:
        async def write(request: Request, over: Callable[[str], bool], seconds: float | None) -> Reply:
            left = self.lineup.left
            if place >= len(left):
                raise ModelFailed("none", ModelTrouble.OTHER, "no further model is left")
            return await self._written(self._models[left[place].id], request, over, seconds)

        return write

    async def _written(
        self, model: HostModel, request: Request, over: Callable[[str], bool], seconds: float | None
    ) -> Reply:
        while True:
            try:
                reply = await self._written_once(model, request, over, seconds)
            except ModelFailed as failure:
                possible = steps_against(failure.cause, is_last=False) & {Step.LEVEL} if model.has_level else ()
                if self.refusals.next(model.id, failure.cause, possible) is None:
                    raise
            else:
                self.refusals.took(model.id)
                return reply

    async def _written_once(
        self, model: HostModel, request: Request, over: Callable[[str], bool], seconds: float | None
    ) -> Reply:
        reader, limit = ReplyReader(model.id), asyncio.timeout(seconds)
        try:
            async with limit, aclosing(model.answer(request, reader)) as fragments:
                async for fragment in fragments:
                    if over(fragment):
                        break
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ModelFailed(model.id, ModelTrouble.TIMEOUT, f"nothing whole within {seconds:.0f} s") from error
        finally:
            reply = reader.close()
            self.add_usage(reply.usage)
        return reply


def _kept_nowhere(_value: Json) -> None:
    """Until the conversation was read, nothing is kept with it."""
