"""One run from start to finish: assembly, deadline, interrupt, terminal events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.choices import ToolMode
from config.notices import Notice, say
from config.settings import Settings
from runner.assembly import Assembled, assemble
from runner.box import Sandbox
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
from runner.delivery import Delivery
from runner.ending import answered, hint, stopped
from runner.errors import HostCallFailed, RunCancelled, TimeIsUp
from runner.events import Completed, Event, Failed, Json, Log, Usage
from runner.host import Host
from runner.interrupt import PollBudget, watch
from runner.loop import Ending, Loop
from runner.memory import ToolMemory
from runner.models.bench import Bench
from runner.models.lineup import Lineup, authorised
from runner.models.reply import Reply
from runner.outbox import Outbox
from runner.past import holds_row
from runner.progress import Progress
from runner.rounds import Rounds
from runner.sandbox.exports import Unsent
from runner.steering import Steering
from runner.tools.call_ids import CallIds
from runner.tools.execute import Executor, ToolSlots
from runner.tools.results import Renderer
from runner.turn import Turns
from runner.view import RunView
from runner.visible import Visible

WINDOW_KEY = "model_context_window_tokens"
"""Where a Host reports the primary model's window; 4.11.2 always reports none (pitfall 22)."""

_CLOSING_LIMIT = 0.5
"""Seconds past the own deadline that closing what is open may take before the answer goes out without waiting."""

_SAVE_LIMIT = 1.5
"""Seconds that saving the checkpoint may take when a run has failed: less than what is left before the Host's end."""


_COLLECT_LIMIT = 60.0
"""Seconds that fetching files out of the sandbox may keep the finished answer waiting."""


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
    outbox = Outbox(_clock)
    if notes:
        outbox.post(Log(f"settings: {'; '.join(notes)}", "warning"))
    this_run = _Run(ctx, host, settings, worker, outbox)
    driving = asyncio.create_task(this_run.drive())
    driving.add_done_callback(partial(_last_words, outbox))
    try:
        async with aclosing(outbox.events()) as events:
            async for event in events:
                yield event
    finally:
        driving.cancel()
        with suppress(asyncio.CancelledError):
            await driving
        await this_run.delivery.give_up()


def _last_words(outbox: Outbox, driving: asyncio.Task[None]) -> None:
    """No reader waits for ever: a run that died without its last words gets them here (Q4)."""
    if not outbox.finished:
        outbox.finish(Failed("the run ended without an ending; please report this", "runner.internal"))


class _Run:
    """The state of one run, and nothing of any other."""

    def __init__(self, ctx: RunnerContext, host: Host, settings: Settings, worker: Worker, outbox: Outbox) -> None:
        self._ctx = ctx
        self._host = host
        self._settings = settings
        self._worker = worker
        self._outbox = outbox
        self.delivery = Delivery(ctx, host, settings, outbox)
        self._hint: str | None = None
        self._visible = Visible()
        self._progress = Progress(self._visible, outbox.show, wanted=settings.progress_notices)
        self._bench: Bench | None = None
        self._started: _Started | None = None
        self._deadline = _deadline_of(ctx, settings)
        self._sandbox = Sandbox(
            ctx, host, settings.box, lambda line: outbox.post(Log(line, "warning")), attaches=self.delivery.sends_files
        )

    async def drive(self) -> None:
        """Run, and whatever happens post exactly one terminal event."""
        work = asyncio.create_task(self._guarded())
        try:
            # A stream that will not close must not hold the answer past the Host's own end.
            await asyncio.wait({work}, timeout=self._patience())
            last = self._ended(work.result()) if work.done() else await self._stopped(TimeIsUp())
            last = (*self._missed(), *last)
        except asyncio.CancelledError as outcome:
            if _is_cancelled():
                await _closed(work)
                raise
            last = await self._stopped(outcome)  # a Host call was cancelled by the other side
        except Exception as outcome:  # noqa: BLE001 - the last resort: whatever it is, the run ends with words (Q4)
            last = await self._stopped(_root_of(outcome))
        self._outbox.finish(*await self._told(last))
        await _closed(work)

    async def _told(self, last: tuple[Event, ...]) -> tuple[Event, ...]:
        """The last events, once the person knows what they say where no Host tells them (J2)."""
        left = None if self._deadline.end is None else self._deadline.end - _clock()
        note = self._say(Notice.TRANSPORT_LIMIT_NOTE)
        return await self.delivery.tell(last, self._hint, seconds=left, cut_note=note)

    def _missed(self) -> tuple[Event, ...]:
        """A line for the owner when follow-ups could not be asked for: somebody may have got no reply (G1)."""
        failed = self._started.steering.failed_pulls if self._started else 0
        if not failed:
            return ()
        return (Log(f"follow-up messages could not be asked for {failed} time(s)", "warning"),)

    def _patience(self) -> float | None:
        end = self._deadline.end
        return None if end is None else max(0.0, end - _clock()) + _CLOSING_LIMIT

    def _ended(self, ending: Ending) -> tuple[Event, ...]:
        """The last events of a run that ended by itself; a silent one says nothing at all (D5)."""
        self.delivery.quote(self._visible)
        if self._silent(ending):
            if self._outbox.last_shown is None:
                return (Completed(usage=self._usage()),)
            self._visible.note(self._say(Notice.DONE))  # a passing notice stands on the card: it may not stay there
        notes = [self._say(Notice.LENGTH_LIMIT_NOTE)] if ending.cut else []
        if ending.concluded and not self._visible.shown:
            notes.append(self._say(Notice.TOOL_ROUNDS_NOTE, rounds=self._settings.tools.max_rounds))
        if self._started and self._started.view.images_left_out:
            notes.append(self._say(Notice.IMAGES_LEFT_OUT_NOTE))
        notes += self._notes_on_files()
        files, record = tuple(self._sandbox.collected.file_ids), self._record()
        return answered(self._visible, self._say, self._usage(), notes=tuple(notes), record=record, file_ids=files)

    def _notes_on_files(self) -> list[str]:
        """What the person has to know about files that are not sent (H3)."""
        left = self._sandbox.collected
        notes = ((Notice.FILES_TOO_LARGE_NOTE, Unsent.LIMIT), (Notice.FILES_FAILED_NOTE, Unsent.FAILED))
        return [self._say(notice, files=names) for notice, why in notes if (names := left.names(why))]

    def _silent(self, ending: Ending) -> bool:
        """Whether the run ends without a word: nothing was said, and nothing had to be."""
        if self._visible.shown or self.delivery.spoke:
            return False
        return ending.silent or self.delivery.may_be_silent()

    async def _stopped(self, outcome: BaseException) -> tuple[Event, ...]:
        """The last events of a run that could not end by itself."""
        self._hint = hint(outcome, self._say)
        if isinstance(outcome, RunCancelled):
            self.delivery.hush()
        await self._save_what_was_learned()
        started = self._started
        if started is not None and not isinstance(outcome, RunCancelled):
            await self._look_once_more(started.steering)
        if started is not None and started.steering.unanswered:
            count = started.steering.unanswered
            self._outbox.post(Log(f"{count} follow-up message(s) were taken and not answered", "warning"))
        files = tuple(self._sandbox.collected.file_ids)
        return stopped(outcome, self._visible, self._say, self._usage(), self._record(), files)

    def _warn(self, text: str) -> None:
        self._outbox.post(Log(text, "warning"))

    def _say(self, notice: Notice, **values: object) -> str:
        """A sentence of the runner in the language of the newest thing said."""
        newest = self._started.steering.newest_text if self._started else ""
        return say(notice, self._settings.notice_locale(newest or self._ctx.input.to_text()), **values)

    async def _guarded(self) -> Ending:
        """The run's work under its own deadline, with an eye on the Host's stop flag."""
        timeout = asyncio.timeout_at(self._deadline.end)
        try:
            async with timeout, asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch())
                ending = await self._work()
                watching.cancel()
        except Exception as error:
            if timeout.expired():
                raise TimeIsUp from error  # whatever fell over while the time ran out
            raise
        return ending

    async def _watch(self) -> None:
        try:
            await watch(self._host, self._worker.polls)
        except RunCancelled:
            self._outbox.hush()
            raise

    async def _work(self) -> Ending:
        models = authorised(self._settings.model.order, self._settings.model.reasoning, self._ctx.resources.models)
        bench = self._bench = Bench(self._host, Lineup(models), remove_think=self._settings.remove_think)
        start = await assemble(self._ctx, self._host, self._settings, self._sandbox, self.delivery.answering)
        for note in start.notes:
            self._outbox.post(Log(note, "warning"))
        context = await self._context(start, bench)
        view = RunView(start.view, context, partial(self._budget, start.checkpoint))
        view.ask(start.question)
        started = self._started = _Started(start.memory, Steering(self._host, start.speakers), context, view)
        turns = Turns(
            bench,
            view,
            self._visible,
            self._outbox.show,
            self._progress,
            self._say,
            self._warn,
            self.delivery.may_be_silent,
        )
        rounds = self._rounds(start)
        self._sandbox.on_lost = lambda: view.withdraw(rounds.withdraw_sandbox())
        return await Loop(
            view,
            turns,
            rounds,
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
            self.delivery.listening(self._sandbox.call_tool),
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
        if not ending.silent or self._visible.shown:
            await self._sandbox.collect(self._collect_until())
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

    def _collect_until(self) -> float:
        end, limit = self._deadline.end, _clock() + _COLLECT_LIMIT
        return limit if end is None else min(limit, end - _SAVE_LIMIT)

    async def _save_what_was_learned(self) -> None:
        """After a failure too: the size a model refused is its window from now on (C7). Never costs the ending."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_LIMIT):
                await self._save_checkpoint()

    async def _look_once_more(self, steering: Steering) -> None:
        """What was said to a run that cannot answer any more is at least named in the log (G1)."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_LIMIT):
                await steering.pull()

    async def _save_checkpoint(self) -> None:
        """Once a run at most (F6); it costs no call when nothing was learned."""
        started = self._started
        if started is None or started.saved or not self._ctx.context.available_apis.state:
            return
        started.saved = True
        await started.context.save(
            partial(self._host.get_state, checkpoints.KEY),
            partial(self._host.set_state, checkpoints.KEY),
            partial(holds_row, self._host),
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
    view: RunView
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


async def _closed(work: asyncio.Task[Ending]) -> None:
    """End a piece of work, whatever it is waiting for, and wait until it has ended."""
    work.cancel()
    await asyncio.wait({work})
    if not work.cancelled():
        work.exception()  # looked at, or asyncio would report it as forgotten


def _is_cancelled() -> bool:
    """Whether somebody cancelled this very task, rather than something it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _root_of(outcome: Exception) -> BaseException:
    """The first cause inside a task group's bundle; a stop on request outweighs what it tore down."""
    if not isinstance(outcome, BaseExceptionGroup):
        return outcome
    leaves = [_root_of(each) if isinstance(each, Exception) else each for each in outcome.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, RunCancelled)), leaves[0])
