"""One model turn: ask, read, and go on to the next model while nothing was shown (C1, C2, C7)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from config.notices import Notice
from runner.context.meter import counting_unavailable
from runner.errors import AllModelsFailed, ModelFailed, ModelTrouble
from runner.models.bench import Bench
from runner.models.provider import HostModel
from runner.models.reply import Reply, ReplyReader
from runner.progress import SUMMARY_PATIENCE, Progress
from runner.view import RunView
from runner.visible import Visible

IMAGE_LEFT_OUT = "[A picture was sent here; this model cannot see pictures.]"
"""What the model reads in place of a picture that it refused."""

_MAY_MEAN_REFUSED = frozenset({ModelTrouble.BAD_REQUEST, ModelTrouble.OTHER})
"""A provider that cannot take pictures, or `tool_choice`, says so in words that never arrive (host-contract §2.3)."""


class BrokenOff(ModelFailed):
    """A model failed after the person had read the beginning of its reply: nobody may start over (C1)."""


class Turns:
    """Runs model turns of one run. Knows whether pictures had to be left out.

    `may_be_silent`: whether an empty reply is an answer by now, since nobody waits for text (J2).
    """

    def __init__(
        self,
        bench: Bench,
        view: RunView,
        visible: Visible,
        show: Callable[[str], None],
        progress: Progress,
        say: Callable[..., str],
        may_be_silent: Callable[[], bool] = lambda: False,
    ) -> None:
        self._bench = bench
        self._view = view
        self._visible = visible
        self._show = show
        self._progress = progress
        self._say = say
        self._may_be_silent = may_be_silent
        self.count = 0
        self.images_left_out = False

    async def take(self, *, conclude: bool = False) -> Reply:
        """One reply of the first model that gives one; with `conclude` no tool may be called in it (D6).

        Raises AllModelsFailed when none does, BrokenOff when one failed with its reply half shown, InputTooLarge and
        CountingUnavailable when no request can be made.
        """
        self.count += 1
        while True:
            try:
                return await self._ask(self._bench.current, conclude=conclude)
            except ModelFailed as failure:
                self._visible.drop_turn()
                if self._visible.turn_shown:
                    raise BrokenOff(failure.model_id, failure.cause, failure.text) from failure
                if not self._may_ask_again(failure, conclude=conclude):
                    self._advance(failure)

    async def _ask(self, model: HostModel, *, conclude: bool) -> Reply:
        with self._progress.notice(self._say(Notice.SUMMARISING), SUMMARY_PATIENCE):
            request = await self._view.request(model.id, visible=self._visible.shown, conclude=conclude)
        self._visible.begin_turn()
        reader = ReplyReader(model.id)
        try:
            async with aclosing(model.answer(request, reader)) as fragments:
                async for fragment in fragments:
                    self._visible.add(fragment)
                    self._show(self._visible.text)
        finally:
            reply = reader.close()
            self._bench.add_usage(reply.usage)
        if reply.empty and not self._visible.shown and not self._may_be_silent():
            raise ModelFailed(model.id, ModelTrouble.EMPTY, "the reply has neither text nor a tool call")
        return reply

    def _may_ask_again(self, failure: ModelFailed, *, conclude: bool) -> bool:
        """Whether the same model is asked once more, with less: a smaller request, no pictures, no tools."""
        if self._view.tighten(failure):
            return True
        if failure.cause not in _MAY_MEAN_REFUSED:
            return False
        return self._leave_out_images() or (conclude and self._leave_out_tools())

    def _leave_out_images(self) -> bool:
        """Once a run: a refusal that may be about pictures is answered by leaving them out (B4)."""
        if self.images_left_out or not self._view.has_images:
            return False
        self._view.leave_out_images(IMAGE_LEFT_OUT)
        self.images_left_out = True
        return True

    def _leave_out_tools(self) -> bool:
        """Once a run: a conclusion that is refused with tools listed is asked for without any (D6)."""
        if not self._view.has_tools:
            return False
        self._view.leave_out_tools()
        return True

    def _advance(self, failure: ModelFailed) -> None:
        """The next model; where none is left only because none can be counted for, that is what is said (F2)."""
        try:
            self._bench.lineup.advance(failure)
        except AllModelsFailed as all_failed:
            raise counting_unavailable(all_failed.failures) or all_failed from failure
