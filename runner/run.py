"""One run from start to finish: assembly, deadline, interrupt, terminal events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.choices import ToolMode
from config.notices import Notice, say
from config.settings import Settings
from runner.answering import Answering, answering_of, may_reply
from runner.assembly import Assembled, assemble
from runner.context import checkpoint as checkpoints
from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint
from runner.context.compaction import Context, Wishes
from runner.context.meter import Meter
from runner.context.summary import Summarise, SummaryReply
from runner.context.tokens import Ruler, load_tokenizer
from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn
from runner.deadline import Deadline, deadline_for
from runner.ending import Say, answered, hint, stopped
from runner.errors import HostCallFailed, RunCancelled, TimeIsUp
from runner.events import Answer, Completed, Event, Failed, Json, Log, Usage
from runner.host import Host
from runner.interrupt import PollBudget, watch
from runner.loop import Ending, Loop
from runner.memory import ToolMemory
from runner.models.bench import Bench
from runner.models.lineup import Lineup, authorised
from runner.models.reply import Reply
from runner.outbox import Outbox
from runner.progress import Progress
from runner.replying import Replier, Spoken
from runner.rounds import Rounds
from runner.steering import Steering
from runner.tools.call_ids import CallIds
from runner.tools.execute import Executor, ToolSlots
from runner.tools.results import Renderer
from runner.turn import Turns
from runner.view import RunView
from runner.visible import Visible

WINDOW_KEY = "model_context_window_tokens"
"""Where a Host reports the primary model's window; 4.11.2 always reports none (pitfall 22)."""

_SAVE_LIMIT = 1.5
"""Seconds that saving the checkpoint may take when a run has failed: less than what is left before the Host's end."""


_REPLY_LIMIT = 60.0
"""Seconds that sending the answer may take outside a pipeline, where the run's own limit leaves so many."""


class Worker:
    """What all runs of this process share: limits, never data of a run (G4)."""

    def __init__(self) -> None:
        self.polls = PollBudget(_clock)
        self.tool_slots = ToolSlots()


async def run(
    ctx: RunnerContext, host: Host, settings: Settings, notes: tuple[str, ...], worker: Worker
) -> AsyncGenerator[Event, None]:
    """Everything a run says, in order; the last event is terminal.

    `notes` tell what was odd in the binding, for one log line. Closing the iterator cancels the run and waits for it.
    """
    this_run = _Run(ctx, host, settings, worker)
    outbox = this_run.outbox
    if notes:
        outbox.post(Log(f"settings: {'; '.join(notes)}", "warning"))
    driving = asyncio.create_task(this_run.drive())
    try:
        async with aclosing(outbox.events()) as events:
            async for event in events:
                yield event
    finally:
        driving.cancel()
        with suppress(asyncio.CancelledError):
            await driving


class _Run:
    """The state of one run, and nothing of any other."""

    def __init__(self, ctx: RunnerContext, host: Host, settings: Settings, worker: Worker) -> None:
        self._ctx = ctx
        self._host = host
        self._settings = settings
        self._worker = worker
        self._answering = answering_of(ctx, settings)
        # Outside a pipeline deltas are shown on the debug page only; elsewhere each would be written down for nobody.
        deltas = self._answering is Answering.HOST or ctx.delivery.supports_streaming
        self._replier = Replier(
            host,
            lambda event: self._outbox.post(event),
            streams=ctx.context.available_apis.reply_stream,
            granted=may_reply(ctx.resources.tools),
            recorded=not deltas,
        )
        watch = self._replier.show if self._answering is Answering.RUNNER else None
        self._outbox = Outbox(_clock, deltas=deltas, watch=watch)
        self._spoken = Spoken(host)
        self._visible = Visible()
        self._progress = Progress(self._visible, self._outbox.show, wanted=settings.progress_notices)
        self._bench: Bench | None = None
        self._started: _Started | None = None
        self._say: Say = partial(_say_in, settings, ctx.input.to_text())
        self._deadline = _deadline_of(ctx, settings)

    @property
    def outbox(self) -> Outbox:
        return self._outbox

    async def drive(self) -> None:
        """Run, and whatever happens post exactly one terminal event."""
        try:
            ending = await self._guarded()
        except Exception as outcome:  # noqa: BLE001 - the last resort: whatever it is, the run ends with words (Q4)
            root = _root_of(outcome)
            if isinstance(root, RunCancelled):
                self._replier.say_nothing_more()
            last = stopped(root, self._visible, self._say, self._usage(), self._record())
            _, last = await asyncio.gather(self._save_what_was_learned(), self._told(last, hint(root, self._say)))
        else:
            last = await self._told(self._ended(ending))
        finally:
            await self._replier.give_up()
        self._outbox.finish(*last)

    def _ended(self, ending: Ending) -> tuple[Event, ...]:
        """The last events of a run that ended by itself; a silent one says nothing at all (D5)."""
        if self._silent(ending):
            return (Completed(usage=self._usage()),)
        notes = [self._say(Notice.LENGTH_LIMIT_NOTE)] if ending.cut else []
        if not self._visible.shown and self._spoken.texts:
            notes = list(self._spoken.texts)  # what the person has read from the model is what the history keeps (J4)
        elif ending.concluded and not self._visible.shown:
            notes.append(self._say(Notice.TOOL_ROUNDS_NOTE, rounds=self._settings.tools.max_rounds))
        return answered(self._visible, self._say, self._usage(), notes=tuple(notes), record=self._record())

    def _silent(self, ending: Ending) -> bool:
        """Whether the run ends without a word: nothing was said, and nothing had to be."""
        if self._visible.shown or self._spoken.texts:
            return False
        return ending.silent or self._may_be_silent()

    def _may_be_silent(self) -> bool:
        """Whether an empty reply is an answer by now (J2)."""
        return self._answering is Answering.NOBODY or bool(self._spoken.texts)

    async def _told(self, last: tuple[Event, ...], instead: str | None = None) -> tuple[Event, ...]:
        """Outside a pipeline, tell the person (J2); the last events are what then remains for the Host.

        `instead`: what they are told when the run failed without an answer.
        """
        answer = next((event for event in last if isinstance(event, Answer)), None)
        if self._answering is Answering.HOST:
            return last
        if self._answering is Answering.NOBODY and answer is not None:
            self._outbox.post(Log(answer.text))
        text = answer.text if answer else instead if isinstance(last[-1], Failed) else None
        if self._answering is Answering.RUNNER and text is not None:
            await self._reply(text, answer.file_ids if answer else ())
        elif self._answering is Answering.MODEL and answer is not None and not self._spoken.texts:
            self._outbox.post(Log("the model did not call event_reply, so nothing was sent", "warning"))
        # Files on the message would fail a run that is no pipeline's (host-contract §15.1).
        return tuple(replace(event, file_ids=()) if isinstance(event, Answer) else event for event in last)

    async def _reply(self, text: str, files: tuple[str, ...]) -> None:
        """Send the answer; what is left of the run's time is what sending may take."""
        end = self._deadline.end
        seconds = _REPLY_LIMIT if end is None else min(_REPLY_LIMIT, max(0.0, end - _clock()) + _SAVE_LIMIT)
        try:
            await self._replier.close(text, files, seconds=seconds, cut_note=self._say(Notice.TRANSPORT_LIMIT_NOTE))
        except Exception as fault:  # noqa: BLE001 - whatever it is, the run still ends with its answer on record (Q4)
            self._outbox.post(Log(f"the reply failed: {type(fault).__name__}: {fault}", "error"))

    async def _guarded(self) -> Ending:
        """The run's work under its own deadline, with an eye on the Host's stop flag."""
        timeout = asyncio.timeout_at(self._deadline.end)
        try:
            async with timeout, asyncio.TaskGroup() as group:
                watching = group.create_task(watch(self._host, self._worker.polls))
                ending = await self._work()
                watching.cancel()
        except TimeoutError as error:
            if timeout.expired():
                raise TimeIsUp from error
            raise
        return ending

    async def _work(self) -> Ending:
        models = authorised(self._settings.model.order, self._settings.model.reasoning, self._ctx.resources.models)
        bench = self._bench = Bench(self._host, Lineup(models), remove_think=self._settings.remove_think)
        start = await assemble(self._ctx, self._host, self._settings, self._answering)
        for note in start.notes:
            self._outbox.post(Log(note, "warning"))
        context = await self._context(start, bench)
        started = self._started = _Started(start.memory, Steering(self._host, start.speakers), context)
        view = RunView(start.view, context, partial(self._budget, start.checkpoint))
        view.ask(start.question)
        turns = Turns(bench, view, self._visible, self._outbox.show, self._progress, self._say, self._may_be_silent)
        return await Loop(
            view,
            turns,
            self._rounds(start),
            started.steering,
            self._deadline,
            self._settle,
            max_rounds=self._settings.tools.max_rounds,
            clock=_clock,
        ).run()

    async def _context(self, start: Assembled, bench: Bench) -> Context:
        apis, limits = self._ctx.context.available_apis, self._settings.context
        return Context(
            meter=Meter(bench.count),
            ruler=Ruler(await load_tokenizer()),
            wishes=Wishes(limits.keep_recent_tokens, limits.summary_tokens),
            summarisers=[_summariser(write) for write in bench.writers()],
            now=time.time,
            log=lambda line: self._outbox.post(Log(line)),
            checkpoint=start.checkpoint,
            durable=apis.state and apis.history_page,
            unread=start.past.unread,
            empty=start.past.empty,
        )

    def _rounds(self, start: Assembled) -> Rounds:
        settings = self._settings
        executor = Executor(
            self._spoken.call_tool,
            Renderer(settings.tools.max_result_chars, _skill_chars(settings)),
            self._worker.tool_slots,
            self._outbox.post,
            serial=settings.tools.mode is ToolMode.SERIAL,
        )
        taken = (call.id for unit in start.view.units if isinstance(unit, AssistantTurn) for call in unit.calls)
        return Rounds(start.catalogue, executor, self._progress, self._say, CallIds(taken), start.memory)

    def _budget(self, checkpoint: Checkpoint | None, model_id: str) -> Budget:
        limits = self._settings.context
        reported = self._ctx.runtime.metadata.get(WINDOW_KEY)
        learned = checkpoint.windows.get(model_id) if checkpoint else None
        return Budget.of(limits.window_tokens, limits.reserve_tokens, reported=reported, learned=learned)

    async def _settle(self, ending: Ending) -> None:
        """What has to be done before the last look for follow-ups; a failure costs memory, never the answer (Q4)."""
        self._outbox.flush()
        if self._started is None:
            return
        memory = self._started.memory
        try:
            if self._silent(ending):
                await memory.put_aside(self._host)
            else:
                await memory.settle(self._host)
        except HostCallFailed as failure:
            self._outbox.post(Log(f"the record of tools could not be kept: {failure}", "warning"))
        await self._save_checkpoint()

    async def _save_what_was_learned(self) -> None:
        """After a failure too: the size a model refused is its window from now on (C7). Never costs the ending."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_LIMIT):
                await self._save_checkpoint()

    async def _save_checkpoint(self) -> None:
        """Once a run at most (F6); it costs no call when nothing was learned."""
        started = self._started
        if started is None or started.saved or not self._ctx.context.available_apis.state:
            return
        started.saved = True
        await started.context.save(
            partial(self._host.get_state, checkpoints.KEY), partial(self._host.set_state, checkpoints.KEY)
        )

    def _record(self) -> Mapping[str, Json] | None:
        """The private record for the final message: what tools said, and in a group who is who (B6)."""
        if self._started is None:
            return None
        speakers = self._started.steering.speakers
        return self._started.memory.record(speakers.names if speakers.group else {})

    def _usage(self) -> Usage | None:
        return self._bench.usage if self._bench else None


@dataclass(slots=True)
class _Started:
    """What exists once a run is assembled. `saved`: the checkpoint was written, or need not be."""

    memory: ToolMemory
    steering: Steering
    context: Context
    saved: bool = False


def _summariser(write: Callable[[Request], Awaitable[Reply]]) -> Summarise:
    """A model as the context wants one for summaries (F5)."""

    async def summarise(request: Request) -> SummaryReply:
        reply = await write(request)
        return SummaryReply(reply.text, bool(reply.calls), "length" if reply.cut else None)

    return summarise


def _skill_chars(settings: Settings) -> int:
    """Characters of a skill's text: a quarter of the input budget (D4), at a cautious 3 characters a token."""
    return settings.context.input_budget() // 4 * 3


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _deadline_of(ctx: RunnerContext, settings: Settings) -> Deadline:
    host_left = None
    if ctx.runtime.deadline_at is not None:
        host_left = ctx.runtime.deadline_at - time.time()
    return deadline_for(_clock(), settings.timeout, host_left)


def _say_in(settings: Settings, newest_text: str, notice: Notice, **values: object) -> str:
    return say(notice, settings.notice_locale(newest_text), **values)


def _root_of(outcome: Exception) -> BaseException:
    """The first cause inside a task group's bundle; a stop on request outweighs what it tore down."""
    if not isinstance(outcome, BaseExceptionGroup):
        return outcome
    leaves = [_root_of(each) if isinstance(each, Exception) else each for each in outcome.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, RunCancelled)), leaves[0])
