"""One model turn: ask, read, and go on to the next model while nothing was shown (C1, C2, C7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing

from config.notices import Notice
from runner import clock
from runner.context.meter import CountFailed, counting_unavailable
from runner.conversation.request import Request
from runner.errors import AllModelsFailed, InputTooLarge, ModelFailed, ModelTrouble
from runner.models.contract import Model, Models
from runner.models.reply import Reply, ReplyReader
from runner.progress import SUMMARY_PATIENCE, Progress
from runner.small.manner import Manner, Standard
from runner.small.reading import Reading
from runner.view import RunView
from runner.visible import Visible

_MAY_MEAN_REFUSED = frozenset({ModelTrouble.BAD_REQUEST, ModelTrouble.OTHER})
"""A provider that cannot take pictures, or `tool_choice`, says so in words that never arrive."""


_WARNING_LIMIT = 500
"""Characters of a model's failure that go into one log line."""


class BrokenOff(ModelFailed):
    """A model failed after the person had read the beginning of its reply: nobody may start over (C1).

    `half` is what came of the reply, for the history.
    """

    def __init__(self, failure: ModelFailed, half: str) -> None:
        super().__init__(failure.model_id, failure.cause, failure.text)
        self.half = half


class StepTimedOut(ModelFailed):
    """A model took longer than one step may take (S3). `seconds` is that limit."""

    def __init__(self, model_id: str, seconds: float) -> None:
        super().__init__(model_id, ModelTrouble.TIMEOUT, f"no reply within {seconds:g} s, the limit of one step")
        self.seconds = seconds


class Turns:
    """Runs the model turns of one run.

    `may_be_silent`: whether an empty reply is an answer by now, since nobody waits for text (J2). `manner`: how the
    model is spoken to and its replies are read. `by_model` counts the turns, `seconds` is what they took in all.
    """

    def __init__(
        self,
        models: Models,
        view: RunView,
        visible: Visible,
        show: Callable[[str], None],
        progress: Progress,
        say: Callable[..., str],
        warn: Callable[[str], None],
        may_be_silent: Callable[[], bool] = lambda: False,
        manner: Manner | None = None,
    ) -> None:
        self._models = models
        self._view = view
        self._visible = visible
        self._show = show
        self._progress = progress
        self._say = say
        self._may_be_silent = may_be_silent
        self._warn = warn
        self._manner: Manner = manner or Standard()
        self.by_model: Counter[str] = Counter()
        self.seconds = 0.0

    async def take(self, *, conclude: bool = False) -> Reply:
        """One reply of the first model that gives one; with `conclude` no tool may be called in it (D6).

        Raises AllModelsFailed when none does, BrokenOff when one failed with its reply half shown, InputTooLarge and
        CountingUnavailable when no request can be made.
        """
        began = clock.now()
        try:
            return await self._take(conclude=conclude)
        finally:
            self.by_model[self._models.current.id] += 1
            self.seconds += clock.now() - began

    async def _take(self, *, conclude: bool) -> Reply:
        while True:
            try:
                reply = await self._ask(self._models.current, conclude=conclude)
            except ModelFailed as failure:
                self._visible.drop_turn()
                if self._visible.turn_shown:
                    half = self._visible.turn_text
                    self._visible.note(self._say(Notice.BROKEN_OFF_NOTE))
                    raise BrokenOff(failure, half) from failure
                if not self._may_ask_again(failure, conclude=conclude):
                    self._advance(failure)
            else:
                if not reply.empty or self._may_be_silent():
                    self._view.keep()
                    return reply
                self._visible.drop_turn()
                if self._manner.retries_empty(reply):
                    continue
                if self._models.lineup.is_last:
                    return reply  # nobody has more to say: what was shown stands, or a sentence says it (C6)
                self._advance(ModelFailed(reply.model_id, ModelTrouble.EMPTY, "neither text nor a tool call came"))

    def reveal(self, text: str) -> None:
        """Show words of a reply that were held until it was judged."""
        if text:
            self._visible.add(text)
            self._show(self._visible.text)

    def note(self, text: str) -> None:
        """Show a sentence of the runner."""
        self._visible.note(text)
        self._show(self._visible.text)

    async def _ask(self, model: Model, *, conclude: bool) -> Reply:
        self._visible.begin_turn()
        self._manner.begin(model.id, conclude=conclude)
        with self._progress.notice(self._say(Notice.SUMMARISING), SUMMARY_PATIENCE):
            request = await self._request(model.id, conclude=conclude)
        reader = ReplyReader(model.id)
        reading = self._manner.reading(model.id)
        seconds = self._manner.step_seconds(model.id)
        try:
            if seconds is None:
                await self._read(model, request, reader, reading)
            else:
                await self._read_in_time(model, request, reader, reading, seconds)
        finally:
            reply = reader.close()
            self._models.add_usage(reply.usage)
        return reading.close(reply)

    async def _request(self, model_id: str, *, conclude: bool) -> Request:
        try:
            return await self._view.request(model_id, visible=self._visible.shown, conclude=conclude)
        except InputTooLarge as fault:
            if not self._models.lineup.is_last and self._view.is_narrowed(model_id):
                # What does not fit a model that refused may well fit the next one (C7).
                raise ModelFailed(model_id, ModelTrouble.OVERFLOW, str(fault)) from fault
            if not self._view.widen(model_id):
                raise
            self._warn(f"{fault} The window was learned from a refusal; it is disbelieved once.")
        return await self._view.request(model_id, visible=self._visible.shown, conclude=conclude)

    async def _read(self, model: Model, request: Request, reader: ReplyReader, reading: Reading) -> None:
        async with aclosing(model.answer(request, reader)) as fragments:
            async for fragment in fragments:
                self.reveal(reading.feed(fragment))
                if reading.over:
                    return

    async def _read_in_time(
        self, model: Model, request: Request, reader: ReplyReader, reading: Reading, seconds: float
    ) -> None:
        """The same, within the limit of one step, which begins anew at the first token (S3)."""
        limit = asyncio.timeout(seconds)
        reader.on_begin = lambda: limit.reschedule(clock.now() + seconds)
        try:
            async with limit:
                await self._read(model, request, reader, reading)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StepTimedOut(model.id, seconds) from error

    def _may_ask_again(self, failure: ModelFailed, *, conclude: bool) -> bool:
        """Whether the same model is asked once more, with less: a smaller request, no pictures, no tools."""
        self._warn(str(failure)[:_WARNING_LIMIT])
        if not isinstance(failure, CountFailed) and self._view.tighten(failure):
            return True
        if failure.cause not in _MAY_MEAN_REFUSED:
            return False
        if self._manner.drops(failure):
            return True
        return self._view.leave_out_images() or (conclude and self._view.leave_out_tools())

    def _advance(self, failure: ModelFailed) -> None:
        """The next model; where none is left only because none can be counted for, that is what is said (F2)."""
        self._view.give_back()
        try:
            self._models.lineup.advance(failure)
        except AllModelsFailed as all_failed:
            raise counting_unavailable(all_failed.failures) or all_failed from failure
