"""One model turn: ask, read, and go on to the next model while nothing was shown (C1, C2, C7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from config.notices import Notice
from runner.channel.visible import LeadIns, Visible
from runner.context.meter import CountFailed, counting_unavailable
from runner.context.overflow import Overflow
from runner.conversation.request import Request
from runner.host import clock
from runner.host.errors import AllModelsFailed, InputTooLarge, ModelFailed, ModelTrouble
from runner.loop.policy import Policy, Reading, Standard
from runner.loop.progress import SUMMARY_PATIENCE, Progress
from runner.loop.view import RunView
from runner.models.contract import Model, Models
from runner.models.refusals import CHANGED, Refusals, Step, steps_against, steps_in
from runner.models.reply import Reply, ReplyReader
from runner.models.waiting import FirstEvent, Limits, OutOfTime, Waiting

_AT_ONCE = 1_000
"""Characters of a reply that may be gone over in the event loop: a few milliseconds at the worst (Sm)."""

Made = TypeVar("Made")

_WARNING_LIMIT = 500
"""Characters of a model's failure that go into one log line."""

_TOOLS: Final = frozenset({Step.TOOLS, Step.TOOL_TURNS})


async def _in_time(effort: int, work: Callable[[], Made]) -> Made:
    """What `work` gives; done in a thread where it goes over so much text that other chats would have to wait (Sm)."""
    return work() if effort <= _AT_ONCE else await asyncio.to_thread(work)


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


class Hangs(ModelFailed):
    """Nothing at all came of a model for so long that the next one is asked (K8)."""

    def __init__(self, model_id: str, seconds: float) -> None:
        super().__init__(model_id, ModelTrouble.TIMEOUT, f"nothing came within {seconds:g} s")


class Turns:
    """Runs the model turns of one run.

    `may_be_silent`: whether an empty reply is an answer by now, since nobody waits for text (J2). `policy`: how the
    model is spoken to and its replies are read. `refusals`: what each model did not take (K7). `first_event`: how long
    it may keep silent (K8); None: for ever. `by_model` counts the turns, `seconds` is what they took in all.
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
        policy: Policy | None = None,
        refusals: Refusals | None = None,
        first_event: FirstEvent | None = None,
    ) -> None:
        self._models = models
        self._view = view
        self._visible = visible
        self._show = show
        self._progress = progress
        self._say = say
        self._may_be_silent = may_be_silent
        self._warn = warn
        self._policy: Policy = policy or Standard()
        self._refusals = refusals or Refusals()
        self._first_event = first_event
        self._sent: Request | None = None
        self._begun = False
        self._concludes_bare = False
        self._told_of: set[str] = set()
        self._left: set[asyncio.Task[None]] = set()
        self._lead_ins = LeadIns()
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

    async def closed(self) -> None:
        """Wait until streams that were given up have closed."""
        if self._left:
            await asyncio.wait(self._left)

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
                if not self._may_ask_again(failure):
                    self._advance(failure)
            else:
                if self._stands(reply, conclude=conclude):
                    self._view.took()
                    self._refusals.took(reply.model_id)
                    return reply
                self._visible.drop_turn()
                if not self._may_say_more(reply, conclude=conclude) and not self._goes_on_after(reply):
                    return reply

    def _stands(self, reply: Reply, *, conclude: bool) -> bool:
        """Whether the run may go on from a reply; in a conclusion calls alone are no answer (K10)."""
        nothing = reply.wordless if conclude or reply.filtered else reply.empty
        return not nothing or self._may_be_silent()

    def _may_say_more(self, reply: Reply, *, conclude: bool) -> bool:
        """Whether the same model is asked once more after a reply of nothing."""
        if reply.filtered:
            return False
        if conclude and self._sent is not None and steps_in(self._sent) & _TOOLS:
            self._concludes_bare = True
            return True
        return not (conclude and self._concludes_bare) and self._policy.retries_empty(reply)

    def _goes_on_after(self, reply: Reply) -> bool:
        """The next model, after a reply of nothing. False: nobody has more to say, and what was shown stands (C6)."""
        if reply.filtered:
            self._advance(
                ModelFailed(reply.model_id, ModelTrouble.FILTERED, "the provider's filter let nothing through")
            )
        elif self._models.lineup.is_last:
            return False
        else:
            self._advance(ModelFailed(reply.model_id, ModelTrouble.EMPTY, "neither text nor a tool call came"))
        return True

    def reveal(self, text: str) -> None:
        """Show words of a reply that were held until it was judged."""
        self._add(self._lead_ins.feed(text) if text else "")

    def end(self, *, calls: bool) -> None:
        """The reply was judged and revealed. `calls`: it stands before calls, so it is shown once (K9)."""
        self._add(self._lead_ins.end(calls=calls))

    def answer_anew(self) -> None:
        """Somebody said something new: whatever a model says now may answer it."""
        self._lead_ins.forget()

    def _add(self, text: str) -> None:
        if text:
            self._visible.add(text)
            self._show(self._visible.text)

    def note(self, text: str) -> None:
        """Show a sentence of the runner."""
        self._visible.note(text)
        self._show(self._visible.text)

    async def _ask(self, model: Model, *, conclude: bool) -> Reply:
        without = self._without(model.id, conclude=conclude)
        self._visible.begin_turn()
        self._lead_ins.begin()
        self._policy.begin(model.id, conclude=conclude, unforced=Step.FORCING in without)
        self._sent, self._begun = None, False
        with self._progress.notice(self._say(Notice.SUMMARISING), SUMMARY_PATIENCE):
            request = self._sent = await self._request(model.id, without, conclude=conclude)
        reader = ReplyReader(model.id)
        reading = self._policy.reading(model.id)
        try:
            await self._read_in_time(model, request, reader, reading)
        finally:
            reply = reader.close()
            self._models.add_usage(reply.usage)
        reply = await _in_time(reading.effort(None), partial(reading.close, reply))
        return replace(reply, calls=()) if reply.filtered else reply

    def _without(self, model_id: str, *, conclude: bool) -> frozenset[Step]:
        """What is left out for this model. Where `tool_choice` is refused or not minded, a conclusion has no tools."""
        without = self._refusals.without(model_id)
        if model_id not in self._told_of:
            self._told_of.add(model_id)
            self._tell_of(model_id, without & (steps_in(self._view.whole) | {Step.LEVEL}))
        if conclude and (self._concludes_bare or Step.FORCING in without):
            return without | {Step.TOOLS}
        return without

    def _tell_of(self, model_id: str, remembered: frozenset[Step]) -> None:
        """Name what is left out from the start, since an earlier run had to: nothing goes missing in silence."""
        if remembered:
            changed = ", ".join(CHANGED[step] for step in Step if step in remembered)
            self._warn(f"model {model_id} is asked {changed}, since it refused requests before that helped")

    async def _request(self, model_id: str, without: frozenset[Step], *, conclude: bool) -> Request:
        async def made() -> Request:
            visible = self._visible.shown
            return await self._view.request(model_id, visible=visible, conclude=conclude, without=without)

        try:
            return await made()
        except InputTooLarge as fault:
            if not self._models.lineup.is_last and self._view.is_narrowed(model_id):
                # What does not fit a model that refused may well fit the next one (C7).
                raise ModelFailed(model_id, ModelTrouble.OVERFLOW, str(fault)) from fault
            if not self._view.widen(model_id):
                raise
            self._warn(f"{fault} The window was learned from a refusal; it is disbelieved once.")
        return await made()

    async def _read_in_time(self, model: Model, request: Request, reader: ReplyReader, reading: Reading) -> None:
        """Read a reply within the limit of one step, which begins anew at the first event (S3), or until a model that
        says nothing has to give way (K8)."""
        step = self._policy.step_seconds(model.id)
        first_event = self._first_event if step is None else None
        limits = Limits(step, step) if step is not None else first_event.limits() if first_event else None
        waiting = Waiting(limits, self._left)
        reader.on_begin = waiting.begins
        try:
            await waiting.read(self._read(model, request, reader, reading, waiting))
        except OutOfTime as late:
            if step is not None:
                raise StepTimedOut(model.id, late.seconds) from late
            raise Hangs(model.id, late.seconds) from late
        finally:
            self._begun = waiting.began_after is not None
        if first_event is not None and waiting.began_after is not None:
            first_event.began(waiting.began_after)

    async def _read(
        self, model: Model, request: Request, reader: ReplyReader, reading: Reading, waiting: Waiting
    ) -> None:
        async with aclosing(model.answer(request, reader)) as fragments:
            async for fragment in fragments:
                if waiting.over:
                    return
                self.reveal(await _in_time(reading.effort(fragment), partial(reading.feed, fragment)))
                if reading.over:
                    return

    def _may_ask_again(self, failure: ModelFailed) -> bool:
        """Whether the same model is asked once more, with another request: the next step of the escalation (K7)."""
        model = self._models.current
        step = self._refusals.next(model.id, failure.cause, self._possible(failure, model))
        if step is Step.SIZE:
            self._view.tighten(failure)
        words = str(failure)[:_WARNING_LIMIT]
        self._warn(f"{words}; asked again {CHANGED[step]}" if step else words)
        return step is not None

    def _possible(self, failure: ModelFailed, model: Model) -> frozenset[Step]:
        """The steps that would change what the model refused, and may be about the reason."""
        level = frozenset({Step.LEVEL}) if model.has_level else frozenset()
        if isinstance(failure, CountFailed):
            against = steps_against(failure.cause, is_last=True)
            pictures = steps_in(self._view.whole) & {Step.PICTURES}
            return against & (level | pictures) if failure.offered else frozenset()
        if self._sent is None or isinstance(failure, Hangs):
            return frozenset()
        overflow = self._view.overflow(failure)
        is_last = self._models.lineup.is_last
        against = frozenset() if self._begun else steps_against(failure.cause, is_last=is_last)
        found = frozenset() if overflow is Overflow.SAID else against & (level | steps_in(self._sent))
        fits_less = overflow is not Overflow.NONE and self._view.may_tighten(model.id)
        return found | {Step.SIZE} if fits_less else found

    def _advance(self, failure: ModelFailed) -> None:
        """The next model; where none is left only because none can be counted for, that is what is said (F2)."""
        self._view.gave_up()
        try:
            self._models.lineup.advance(failure)
        except AllModelsFailed as all_failed:
            raise counting_unavailable(all_failed.failures) or all_failed from failure
