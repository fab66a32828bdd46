"""One run from start to finish: assembly, deadline, interrupt, terminal events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.notices import Notice, say
from config.settings import Settings
from runner.channel.delivery import Delivery
from runner.channel.outbox import Outbox
from runner.channel.visible import Visible
from runner.context.save_marks import SaveMarks
from runner.conversation.units import UserTurn
from runner.host import clock
from runner.host.cancellation import closed, is_cancelled
from runner.host.deadline import deadline_for
from runner.host.errors import RunCancelled, TimeIsUp
from runner.host.events import Answer, Completed, Event, Failed, Json, Log, Usage
from runner.host.port import Host
from runner.loop.loop import Conclusion, Ending, Loop
from runner.loop.progress import Progress
from runner.models.fallback_order import Lineup, authorised
from runner.models.pool import Bench
from runner.models.reply import Reply
from runner.run import late_fold
from runner.run.assembly import assemble
from runner.run.closing import Closing
from runner.run.consenting import desk_of, is_dead_press, told, with_request
from runner.run.dump import Dump, Recorder
from runner.run.ending import answered, hint, ran_out_of_time, stopped
from runner.run.interrupt import PollBudget, watch
from runner.run.late_fold import LateFold
from runner.run.run_stats import ANSWERED, OUT_OF_TIME, WORDLESS, Tally, accounted, outcome_of
from runner.run.setup import Parts, Surroundings, make_parts
from runner.sandbox.box import Sandbox
from runner.sandbox.exports import Unsent
from runner.small.choice import most_rounds
from runner.small.part import EVERY_PART
from runner.small.part import Parts as SmallParts
from runner.tools.catalogue import Catalogue
from runner.tools.execute import ToolSlots
from runner.tools.jobs import Job

_CLOSING_LIMIT = 0.5
"""Seconds past the own deadline that closing what is open may take before the answer goes out without waiting."""
_NOTICEABLE = 1.5
"""Seconds by which LangBot's own limit is shorter than the setting before the log says so (N4)."""
_SOONER = "the time limit of {limit} s does not hold: LangBot itself ends this run after {left:.0f} s"


class Worker:
    """What all runs of this process share: limits, never data of a run (G4), nothing of a chat but when to try (L9)."""

    def __init__(self, small_parts: SmallParts = EVERY_PART) -> None:
        self.small_parts = small_parts
        self.polls = PollBudget(clock.now)
        self.tool_slots = ToolSlots()
        self.save_marks = SaveMarks(clock.now)


async def run(
    ctx: RunnerContext, host: Host, settings: Settings, notes: tuple[str, ...], worker: Worker
) -> AsyncGenerator[Event, None]:
    """Everything a run says, in order; the last event is terminal.

    `notes` tell what was odd in the binding, for one log line. Closing the iterator cancels the run and waits for it.
    """
    outbox = Outbox(clock.now)
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
        if not outbox.finished:
            driving.cancel()
        try:
            await asyncio.wait({driving})  # not `await driving`: its cancellation and the reader's would look the same
        finally:
            await this_run.give_up()


def _last_words(outbox: Outbox, driving: asyncio.Task[None]) -> None:
    """No reader waits for ever: a run that died without its last words gets them here (Q4)."""
    if not outbox.finished:
        outbox.finish(Failed("the run ended without an ending; please report this", "runner.internal"))


class _Run:
    """The state of one run, and nothing of any other."""

    def __init__(self, ctx: RunnerContext, host: Host, settings: Settings, worker: Worker, outbox: Outbox) -> None:
        self._began = clock.now()
        self._out_of_time = False
        host_left = None if ctx.runtime.deadline_at is None else ctx.runtime.deadline_at - time.time()
        self._deadline = deadline_for(clock.now(), settings.timeout, host_left)
        if host_left is not None and settings.timeout is not None and host_left < settings.timeout - _NOTICEABLE:
            outbox.post_later(Log(_SOONER.format(limit=settings.timeout, left=max(0.0, host_left)), "warning"))
        self._polls = worker.polls
        self._bench: Bench | None = None
        self._parts: Parts | None = None
        self._closing: Closing | None = None
        self._tallied: Tally | None = None
        self._hint: str | None = None
        visible, delivery = Visible(), Delivery(ctx, host, settings, outbox)
        self._around = Surroundings(
            ctx=ctx,
            host=host,
            settings=settings,
            tool_slots=worker.tool_slots,
            outbox=outbox,
            visible=visible,
            progress=Progress(visible, outbox.show, wanted=settings.progress_notices),
            delivery=delivery,
            sandbox=Sandbox(
                ctx, host, settings.box, lambda line: outbox.post(Log(line, "warning")), attaches=delivery.sends_files
            ),
            deadline=self._deadline,
            say=self._say,
            save_marks=worker.save_marks,
            small_parts=worker.small_parts,
        )
        self._consent = desk_of(self._around)
        if self._consent is not None:
            self._around = replace(self._around, consent=self._consent)

    async def drive(self) -> None:
        """Run, and whatever happens post exactly one terminal event. Nothing of the run is left behind."""
        work, watching = asyncio.create_task(self._guarded()), asyncio.create_task(self._watch())
        try:
            last = await self._told(await self._outcome(work, watching))
            tally = self._tally(outcome_of(last, out_of_time=self._out_of_time))
            self._around.outbox.finish(*(accounted(last, tally.logs()) if tally.adds_to(self._tallied) else last))
        finally:
            await closed(work)
            await closed(watching)
            if self._parts is not None:
                await self._parts.turns.closed()
            if self._closing is not None:
                await self._closing.closed()

    async def _outcome(self, work: asyncio.Task[Ending], watching: asyncio.Task[None]) -> tuple[Event, ...]:
        """The last events, whatever the work comes to."""
        try:
            await self._over(work, watching)
            last = self._ended(work.result()) if work.done() else await self._stopped(TimeIsUp())
            return (*self._missed(), *last)
        except asyncio.CancelledError as outcome:
            if is_cancelled():
                raise
            return await self._stopped(outcome)  # the work was cancelled by nobody of ours
        except Exception as outcome:  # noqa: BLE001 - the last resort: whatever it is, the run ends with words (Q4)
            return await self._stopped(_root_of(outcome))

    async def _over(self, work: asyncio.Task[Ending], watching: asyncio.Task[None]) -> None:
        """Return once the work has ended, or its time is up. Raises RunCancelled where the Host wants it stopped.

        The work does not wait for the last look at the Host's flag, nor that look for the work (I4). A stream that will
        not close must not hold the answer past the Host's own end.
        """
        try:
            await asyncio.wait({work, watching}, timeout=self._patience(), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience()):
                        await closed(work)
                watching.result()
        finally:
            watching.cancel()

    async def give_up(self) -> None:
        """Leave nothing open behind a run that its reader has left."""
        await self._around.delivery.give_up()

    async def _told(self, last: tuple[Event, ...]) -> tuple[Event, ...]:
        """The last events, once the person knows what they say where no Host tells them (J2)."""
        left = None if self._deadline.end is None else self._deadline.end - clock.now()
        note = self._say(Notice.TRANSPORT_LIMIT_NOTE)
        return await self._around.delivery.tell(last, self._hint, seconds=left, cut_note=note)

    def _tally(self, outcome: str) -> Tally:
        """What the run came to, as far as it got."""
        tally = Tally(outcome, clock.now() - self._began, usage=self._usage())
        if self._bench is None or (parts := self._parts) is None:
            return tally
        turns, rounds, spent = parts.turns, parts.rounds, parts.context.spent
        return replace(
            tally,
            model_seconds=turns.seconds,
            tool_seconds=rounds.seconds,
            turns=turns.by_model,
            rounds=rounds.count,
            tools=rounds.tools,
            failed_calls=rounds.failed,
            compactions=spent.compactions,
            summaries=spent.summaries,
            digests=spent.digests,
            fallbacks=self._bench.lineup.fallbacks_used,
            follow_ups=parts.steering.pulled,
            consents=told(self._consent.counts) if self._consent is not None else (),
        )

    def _missed(self) -> tuple[Event, ...]:
        """A line for the owner when follow-ups could not be asked for: somebody may have got no reply (G1)."""
        failed = self._parts.steering.failed_pulls if self._parts else 0
        if not failed:
            return ()
        return (Log(f"follow-up messages could not be asked for {failed} time(s)", "warning"),)

    def _patience(self) -> float | None:
        end = self._deadline.end
        return None if end is None else max(0.0, end - clock.now()) + _CLOSING_LIMIT

    def _ended(self, ending: Ending) -> tuple[Event, ...]:
        """The last events of a run that ended by itself; a silent one says nothing at all (D5)."""
        around = self._around
        self._name_open_jobs()
        around.delivery.quote(around.visible)
        if self._silent(ending):
            if around.outbox.last_shown is None:
                return (Completed(usage=self._usage()),)
            # A passing notice stands on the card, where it may not stay.
            around.visible.note(self._say(Notice.DONE))
        notes = (*self._notes_on_answer(ending), *self._notes_on_files(), *self._notes_on_jobs())
        files = tuple(around.sandbox.collected.file_ids)
        last = answered(around.visible, self._say, self._usage(), notes=notes, record=self._record(), file_ids=files)
        return last if self._consent is None else with_request(last, around.visible.text, self._consent)

    def _notes_on_answer(self, ending: Ending) -> list[str]:
        notes = [self._say(Notice.LENGTH_LIMIT_NOTE)] if ending.cut else []
        if ending.filtered:
            notes.append(self._say(Notice.FILTERED_NOTE))
        if ending.wordless and not self._around.delivery.may_be_silent():
            notes += self._notes_on_no_answer(ending.concluded)
        if self._parts and self._parts.view.images_left_out:
            notes.append(self._say(Notice.IMAGES_LEFT_OUT_NOTE))
        return notes

    def _notes_on_no_answer(self, concluded: Conclusion | None) -> list[str]:
        """What stands where the answer is missing, with the true reason (K10)."""
        shown = self._around.visible.shown
        match concluded:
            case Conclusion.ROUNDS:
                return [self._say(Notice.TOOL_ROUNDS_NOTE, rounds=self._around.settings.tools.max_rounds)]
            case Conclusion.TIME:
                return [self._say(Notice.NO_TIME_NOTE if shown else Notice.TIME_LIMIT)]
            case Conclusion.REPETITION:
                return [self._say(Notice.IN_CIRCLES)]
        return [self._say(Notice.NO_ANSWER_NOTE)] if shown else []

    def _notes_on_files(self) -> list[str]:
        """What the person has to know about files that are not sent (H3)."""
        left = self._around.sandbox.collected
        notes = ((Notice.FILES_TOO_LARGE_NOTE, Unsent.LIMIT), (Notice.FILES_FAILED_NOTE, Unsent.FAILED))
        return [self._say(notice, files=names) for notice, why in notes if (names := left.names(why))]

    def _notes_on_jobs(self) -> list[str]:
        """What the person has to know about calls that are given up: nobody stops them (S4)."""
        tools = dict.fromkeys(job.tool for job in self._open_jobs())
        return [self._say(Notice.OPEN_JOBS_NOTE, tools=", ".join(tools))] if tools else []

    def _name_open_jobs(self) -> None:
        for job in self._open_jobs():
            self._around.warn(f"{job.id}: {job.tool} is no longer waited for and may still be running")

    def _open_jobs(self) -> tuple[Job, ...]:
        return self._parts.jobs.without_result if self._parts else ()

    def _silent(self, ending: Ending) -> bool:
        """Whether the run ends without a word: nothing was said, and nothing had to be."""
        if self._around.visible.shown or self._around.delivery.spoke:
            return False
        return ending.silent or self._around.delivery.may_be_silent()

    async def _stopped(self, outcome: BaseException) -> tuple[Event, ...]:
        """The last events of a run that could not end by itself."""
        around = self._around
        self._out_of_time = ran_out_of_time(outcome)
        self._hint = hint(outcome, self._say)
        if isinstance(outcome, RunCancelled):
            around.delivery.hush()
        else:
            self._name_open_jobs()
        if self._closing is not None:
            await self._closing.save_what_was_learned()
            await self._closing.name_what_stays_open(look=not isinstance(outcome, RunCancelled))
        files = tuple(around.sandbox.collected.file_ids)
        notes = tuple(self._notes_on_jobs())
        last = stopped(outcome, around.visible, self._say, self._usage(), self._record(), files, notes)
        has_answer = any(isinstance(event, Answer) for event in last)
        if self._closing is not None and not has_answer and not isinstance(outcome, RunCancelled):
            await self._closing.keep_what_was_done()
        return last

    def _say(self, notice: Notice, **values: object) -> str:
        """A sentence of the runner in the language of the newest thing said."""
        newest = self._parts.steering.newest_text if self._parts else ""
        newest = newest or self._around.ctx.input.to_text()
        return say(notice, self._around.settings.notice_locale(newest), **values)

    async def _guarded(self) -> Ending:
        """The run's work under its own deadline."""
        timeout = asyncio.timeout_at(self._deadline.end)
        try:
            async with timeout:
                return await self._work()
        except Exception as error:
            if timeout.expired():
                raise TimeIsUp from error  # whatever fell over while the time ran out
            raise

    async def _watch(self) -> None:
        """Raises RunCancelled once the Host wants the run stopped."""
        try:
            await watch(self._around.host, self._polls)
        except RunCancelled:
            self._around.outbox.hush()
            raise

    async def _work(self) -> Ending:
        around = self._around
        if self._consent is not None and is_dead_press(around.ctx, self._consent):
            around.visible.note(self._say(Notice.CONSENT_GONE))
            return Ending()
        models = authorised(around.settings.model.order, around.settings.model.reasoning, around.ctx.resources.models)
        bench = self._bench = Bench(around.host, Lineup(models), remove_think=around.settings.remove_think)
        start = await assemble(around.ctx, around.host, around.settings, around.sandbox, around.delivery.answering)
        if start.notes:
            around.outbox.post_later(Log("; ".join(start.notes), "warning"))
        parts = self._parts = await make_parts(around, start, bench)
        known = start.checkpoint.notes.get(late_fold.KEY) if start.checkpoint else None
        self._closing = Closing(around, parts, LateFold(around, parts, lambda: bench.current.id, known))
        async with parts.jobs.kept():
            return await Loop(
                parts.view,
                parts.turns,
                parts.rounds,
                parts.steering,
                self._deadline,
                self._settle,
                max_rounds=most_rounds(around.settings, around.small_parts),
                clock=clock.now,
                policy=parts.policy,
                overhear=self._overhearing(),
                consent=self._consent,
            ).run()

    def _overhearing(self) -> Callable[[Reply, Catalogue], Awaitable[None]] | None:
        """Who records faulty replies, where the binding wants that."""
        if not self._around.settings.debug_dump:
            return None
        return Recorder(Dump(), lambda line: self._around.outbox.post(Log(line)), self._around.warn).hear

    async def _settle(self, ending: Ending) -> UserTurn | None:
        if self._closing is None:
            return None
        wordless = self._silent(ending)
        self._out_of_time = ending.wordless and ending.concluded is Conclusion.TIME
        outcome = OUT_OF_TIME if self._out_of_time else WORDLESS if wordless else ANSWERED
        if self._consent is not None:
            await self._consent.tidy()

        def lines() -> tuple[Log, ...]:
            # Told before the last look for follow-ups (G1); if one comes, the run has another line in the end.
            self._tallied = self._tally(outcome)
            return self._tallied.logs()

        # A run that the policy stopped has nothing to wait for; one that asked for consent is over at once (M3).
        folds = ending.stop is None and not (self._consent is not None and self._consent.counts.asked)
        return await self._closing.settle(lines, silent=ending.silent, wordless=wordless, folds=folds)

    def _record(self) -> Mapping[str, Json] | None:
        return self._closing.record() if self._closing else None

    def _usage(self) -> Usage | None:
        return self._bench.usage if self._bench else None


def _root_of(outcome: BaseException) -> BaseException:
    """The first cause inside a task group's bundle."""
    return _root_of(outcome.exceptions[0]) if isinstance(outcome, BaseExceptionGroup) else outcome
