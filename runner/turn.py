"""One model turn: ask, read, and go on to the next model while nothing was shown (C1, C2)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from runner.context.meter import Meter, counting_unavailable
from runner.conversation.request import Request
from runner.conversation.wire import Wire
from runner.errors import AllModelsFailed, ModelFailed, ModelTrouble
from runner.events import Usage
from runner.host import Host
from runner.models.lineup import Lineup, ModelRef
from runner.models.provider import HostModel
from runner.models.reply import Reply, ReplyReader
from runner.view import View
from runner.visible import Visible

IMAGE_LEFT_OUT = "[A picture was sent here; this model cannot see pictures.]"
"""What the model reads in place of a picture that it refused."""

_MAY_MEAN_REFUSED = frozenset({ModelTrouble.BAD_REQUEST, ModelTrouble.OTHER})
"""A provider that cannot take pictures, or `tool_choice`, says so in words that never arrive (host-contract §2.3)."""


class BrokenOff(ModelFailed):
    """A model failed after the person had read the beginning of its reply: nobody may start over (C1)."""


class Turns:
    """Runs model turns of one run. Adds up usage; knows whether pictures had to be left out."""

    def __init__(
        self,
        host: Host,
        lineup: Lineup,
        view: View,
        visible: Visible,
        show: Callable[[str], None],
        *,
        remove_think: bool,
    ) -> None:
        self._host = host
        self._lineup = lineup
        self._view = view
        self._visible = visible
        self._show = show
        self._remove_think = remove_think
        self._wire = Wire()
        self._providers: dict[str, HostModel] = {}
        self._meter = Meter(self._count)
        self.usage: Usage | None = None
        self.count = 0
        self.images_left_out = False

    async def take(self, *, conclude: bool = False) -> Reply:
        """One reply of the first model that gives one; with `conclude` no tool may be called in it (D6).

        Raises AllModelsFailed when none does, BrokenOff when one failed with its reply half shown, and whatever the
        view raises when it cannot make a request.
        """
        self.count += 1
        while True:
            model = self._provider(self._lineup.current)
            try:
                return await self._ask(model, conclude=conclude)
            except ModelFailed as failure:
                self._visible.drop_turn()
                if self._visible.turn_shown:
                    raise BrokenOff(failure.model_id, failure.cause, failure.text) from failure
                if not (self._retry_without_images(failure) or self._retry_without_tools(failure, conclude)):
                    self._advance(failure)

    async def _ask(self, model: HostModel, *, conclude: bool) -> Reply:
        request = await self._view.request(model, self._meter, conclude=conclude)
        self._visible.begin_turn()
        reader = ReplyReader(model.id)
        try:
            async with aclosing(model.answer(request, reader)) as fragments:
                async for fragment in fragments:
                    self._visible.add(fragment)
                    self._show(self._visible.text)
        finally:
            reply = reader.close()
            self._add_usage(reply.usage)
        if reply.empty and not self._visible.shown:
            raise ModelFailed(model.id, ModelTrouble.EMPTY, "the reply has neither text nor a tool call")
        return reply

    async def _count(self, model_id: str, request: Request) -> int:
        return await self._providers[model_id].count(request)

    def _provider(self, ref: ModelRef) -> HostModel:
        if ref.id not in self._providers:
            self._providers[ref.id] = HostModel(self._host, ref, self._wire, remove_think=self._remove_think)
        return self._providers[ref.id]

    def _retry_without_images(self, failure: ModelFailed) -> bool:
        """Once a run: a refusal that may be about pictures is answered by leaving them out (B4)."""
        if self.images_left_out or failure.cause not in _MAY_MEAN_REFUSED or not self._view.has_images:
            return False
        self._view.leave_out_images(IMAGE_LEFT_OUT)
        self.images_left_out = True
        return True

    def _retry_without_tools(self, failure: ModelFailed, conclude: bool) -> bool:
        """Once a run: a conclusion that is refused with tools listed is asked for without any (D6)."""
        if not conclude or failure.cause not in _MAY_MEAN_REFUSED or not self._view.has_tools:
            return False
        self._view.leave_out_tools()
        return True

    def _advance(self, failure: ModelFailed) -> None:
        """The next model; where none is left only because none can be counted for, that is what is said (F2)."""
        try:
            self._lineup.advance(failure)
        except AllModelsFailed as all_failed:
            raise counting_unavailable(all_failed.failures) or all_failed from failure

    def _add_usage(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage
