"""Running the calls of one turn: concurrency, time limits, and one result for every call (D2, D9, J3, S4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from runner.conversation.units import ToolCall, ToolResult
from runner.host import clock
from runner.host.cancellation import is_cancelled
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json, Log, ToolFinished, ToolStarted
from runner.tools import jobs as slow
from runner.tools.catalogue import Catalogue, Entry
from runner.tools.jobs import Job, Jobs
from runner.tools.listening import ARGUMENTS, listening_ports
from runner.tools.prepare import Ready, Refused, WantedCall, prepare
from runner.tools.results import EVENT_CHARACTERS, ErrorCode, Rendered, Renderer, is_heavy, started_payload

CALLS_PER_RUN = 8
CALLS_PER_WORKER = 64

LISTENING_SECONDS = 3.0
"""How long the sandbox may take to say what listens: a busy one does not answer at all."""

SAID_BEFORE = "not run: the call before it in the same reply says exactly this, and it is never run twice for one wish"

CallTool = Callable[[str, dict[str, Json]], Awaitable[object]]
"""Asks the Host to run a tool by the Host's name; raises HostCallFailed."""

ToolEvent = ToolStarted | ToolFinished | Log


Gate = Callable[[Ready], Ready | Refused]
"""What a call that may run has to pass beside (M2): it stays as it is, or waits, or is refused."""


def open_gate(ready: Ready) -> Ready | Refused:
    """Every call passes."""
    return ready


class ToolSlots:
    """How many calls may be with the Host at once, over all runs of the worker. One object per worker (D2)."""

    def __init__(self, limit: int = CALLS_PER_WORKER) -> None:
        self._semaphore = asyncio.Semaphore(limit)

    @property
    def semaphore(self) -> asyncio.Semaphore:
        return self._semaphore


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call and its result. `ran`: the tool was really asked, so it may have had an effect, even on a time-out.

    `job`: what the call goes on as, or the one it asks for; `rendered` is pending while that has no result.
    """

    call: ToolCall
    rendered: Rendered
    entry: Entry | None
    ran: bool
    job: Job | None = None

    @property
    def result(self) -> ToolResult:
        """The tool message of this call."""
        return ToolResult(self.call.id, self.call.name, self.rendered.text)


@dataclass(frozen=True, slots=True)
class Executor:
    """Everything the batches of one run share. `call_seconds` limits one call from the moment the Host is asked.

    `jobs`: where calls go on that take longer than `soft_seconds` (S4); None: each is waited for to its end.
    """

    call_tool: CallTool
    renderer: Renderer
    slots: ToolSlots
    on_event: Callable[[ToolEvent], None]
    call_seconds: float = 170.0
    serial: bool = False
    jobs: Jobs | None = None
    soft_seconds: float = slow.SOFT_SECONDS
    run_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_PER_RUN))
    acted: set[str] = field(default_factory=set)
    noted: set[str] = field(default_factory=set)
    gate: Gate = open_gate

    def batch(self, wanted: Sequence[WantedCall], catalogue: Catalogue) -> Batch:
        """The calls of one turn, read and checked; nothing runs before `Batch.run`."""
        prepared = _once(prepare(call, catalogue) for call in wanted)
        return Batch(self, (self.gate(each) if isinstance(each, Ready) else each for each in prepared))

    def note(self, ready: Ready) -> None:
        """What the bot's owner should know of a call, each line once a run."""
        for line in ready.notes:
            if line not in self.noted:
                self.noted.add(line)
                self.on_event(Log(line, "warning"))

    async def aside(self, entry: Entry, values: dict[str, Json], seconds: float) -> Rendered | None:
        """A call that the loop makes for itself, within the same slots; None for a failure, or when nothing came."""
        try:
            async with asyncio.timeout(seconds), self.run_slots, self.slots.semaphore:
                rendered = await self.render(entry, await self.call_tool(entry.host_name, values))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return None  # the other side broke the call off
        except Exception:  # noqa: BLE001  what the model did not ask for must not cost what it did (D3)
            return None
        return None if rendered.error else rendered

    async def render(self, entry: Entry, value: object) -> Rendered:
        """A tool's value as the model sees it; what takes long is done in a thread (Q2)."""
        if is_heavy(entry, value):
            return await asyncio.to_thread(self.renderer.render, entry, value)
        return self.renderer.render(entry, value)


class Batch:
    """The calls of one turn. `outcomes()` is complete at any time: what is still open then reads as cancelled (D9)."""

    def __init__(self, executor: Executor, prepared: Iterable[Ready | Refused]) -> None:
        self._executor = executor
        self._prepared = tuple(prepared)
        self._done: dict[int, Outcome] = {}
        self._started: set[int] = set()
        self._asked: set[int] = set()

    async def run(self, *, until: float | None = None) -> tuple[Outcome, ...]:
        """Runs the calls and returns one outcome each, in their order; leaves no task behind.

        `until` is a time of the event loop's clock: what is open then is cancelled and gets a result. When the awaiting
        task itself is cancelled, CancelledError passes through, and `outcomes()` still has a result for every call.
        """
        closing = (ErrorCode.CANCELLED, "the run was stopped")
        try:
            async with asyncio.timeout_at(until):
                await self._run_chains()
        except TimeoutError:
            closing = (ErrorCode.TIMEOUT, "the time of the run was up")
        finally:
            self._close_open(*closing)
        return self.outcomes()

    def outcomes(self) -> tuple[Outcome, ...]:
        """One outcome for each call, in the order of the calls."""
        return tuple(
            self._done.get(at) or self._open_outcome(at, ErrorCode.CANCELLED, "the run was stopped")
            for at in range(len(self._prepared))
        )

    def all_terminate(self) -> bool:
        """Whether every result of the batch asks to end the run (D5)."""
        return bool(self._prepared) and all(outcome.rendered.terminate for outcome in self.outcomes())

    async def _run_chains(self) -> None:
        async with asyncio.TaskGroup() as group:
            for chain in self._chains():
                group.create_task(self._run_chain(chain))

    def _chains(self) -> Sequence[tuple[int, ...]]:
        """Calls that must keep their order and never meet, as one chain each; all of them when `serial`."""
        if self._executor.serial:
            return [tuple(range(len(self._prepared)))]
        lanes: dict[str, list[int]] = {}
        for at, prepared in enumerate(self._prepared):
            lane = prepared.entry.lane if prepared.entry else None
            lanes.setdefault(lane or f"#{at}", []).append(at)
        return [tuple(chain) for chain in lanes.values()]

    async def _run_chain(self, chain: tuple[int, ...]) -> None:
        before: Job | None = None
        for at in chain:
            prepared = self._prepared[at]
            if isinstance(prepared, Ready) and before is not None:
                why = slow.IN_ORDER.format(job=before.id)
                prepared = Refused(prepared.call, ErrorCode.LIMIT, why, prepared.entry)
            if isinstance(prepared, Refused):
                self._start(at, {})
                self._finish(at, self._executor.renderer.error(prepared.code, prepared.text))
            elif prepared.entry.own:
                await self._run_own(at, prepared)
            else:
                before = await self._run_call(at, prepared)

    async def _run_own(self, at: int, ready: Ready) -> None:
        """`job_output`: it takes no slot, since it may wait for those that do."""
        executor, jobs = self._executor, self._executor.jobs
        assert jobs is not None
        self._start(at, ready.values)
        rendered = await jobs.output(ready.values, executor.renderer, executor.soft_seconds)
        self._finish(at, rendered, jobs.named(ready.values))

    async def _run_call(self, at: int, ready: Ready) -> Job | None:
        """Run a call to its end, or to where it goes on as a job."""
        executor = self._executor
        with ExitStack() as slots:
            for semaphore in (executor.run_slots, executor.slots.semaphore):
                await semaphore.acquire()
                slots.callback(semaphore.release)
            self._start(at, ready.values)
            executor.note(ready)
            # Calls that may not meet others of their lane (J3) are waited for, however slow they are.
            if executor.jobs is None or ready.entry.lane is not None:
                self._finish(at, await self._ask(at, ready))
                return None
            began = clock.now()
            task = executor.jobs.begin(self._ask(at, ready))
            if await executor.jobs.ended(task, executor.soft_seconds):
                self._finish(at, task.result())
                return None
            job = executor.jobs.keep(task, ready.entry.label, began, slots.pop_all().close)
        await self._go_on(at, ready, job)
        return job

    async def _go_on(self, at: int, ready: Ready, job: Job) -> None:
        """Tell the model that its call goes on, and what is known: of a command, which ports listen by now (S4)."""
        ports, asks = None, ready.entry.is_sandbox and ready.entry.host_name == "exec"
        if asks:
            told = await self._executor.aside(ready.entry, dict(ARGUMENTS), LISTENING_SECONDS)
            ports = listening_ports(told.body) if told else None
        self._finish(at, job.rendered or slow.started(job, ports, asked=asks), job)

    async def _ask(self, at: int, ready: Ready) -> Rendered:
        executor, entry = self._executor, ready.entry
        if entry.acts_once and ready.call.id in executor.acted:
            return executor.renderer.error(ErrorCode.LIMIT, "this call was run already, and it is never run twice")
        if entry.acts_once:
            executor.acted.add(ready.call.id)
        self._asked.add(at)
        limit = asyncio.timeout(executor.call_seconds)
        try:
            async with limit:
                value = await executor.call_tool(entry.host_name, ready.values)
        except TimeoutError:
            return executor.renderer.error(ErrorCode.TIMEOUT, _timed_out(executor.call_seconds))
        except HostCallFailed as failure:
            return self._host_failure(failure, entry)
        except Exception as failure:  # noqa: BLE001  one tool's accident must not take the run or its neighbours (D3)
            return executor.renderer.error(ErrorCode.FAILED, f"the call failed ({type(failure).__name__})")
        return await executor.render(entry, value)

    def _host_failure(self, failure: HostCallFailed, entry: Entry) -> Rendered:
        renderer = self._executor.renderer
        match failure.kind:
            case HostFailure.TIMEOUT:
                return renderer.error(ErrorCode.TIMEOUT, _timed_out(None))
            case HostFailure.DENIED:
                return renderer.error(ErrorCode.FAILED, "the Host does not allow this tool in this run; do not retry")
            case HostFailure.CONNECTION | HostFailure.MALFORMED:
                return renderer.error(ErrorCode.FAILED, "the Host gave no readable answer; the call may have run")
            case HostFailure.REFUSED:
                return renderer.error(ErrorCode.FAILED, failure.text, said_by=entry.name)

    def _start(self, at: int, values: dict[str, Json]) -> None:
        prepared = self._prepared[at]
        self._started.add(at)
        self._executor.on_event(ToolStarted(prepared.call.id, _label(prepared), started_payload(values)))

    def _finish(self, at: int, rendered: Rendered, job: Job | None = None) -> None:
        prepared = self._prepared[at]
        self._done[at] = Outcome(prepared.call, rendered, prepared.entry, at in self._asked, job)
        error = rendered.body[:EVENT_CHARACTERS] if rendered.error else None
        if rendered.error:
            error = f"{rendered.error.value}: {error}"
        result = None if rendered.error else rendered.event_payload
        self._executor.on_event(ToolFinished(prepared.call.id, _label(prepared), result, error))

    def _close_open(self, code: ErrorCode, why: str) -> None:
        for at in range(len(self._prepared)):
            if at not in self._done:
                if at not in self._started:
                    self._start(at, {})
                self._finish(at, self._open_outcome(at, code, why).rendered)

    def _open_outcome(self, at: int, code: ErrorCode, why: str) -> Outcome:
        asked = at in self._asked
        effect = "before this call ended; it may still have an effect" if asked else "before this call began"
        prepared = self._prepared[at]
        return Outcome(prepared.call, self._executor.renderer.error(code, f"{why} {effect}"), prepared.entry, asked)


def _once(prepared: Iterable[Ready | Refused]) -> Iterator[Ready | Refused]:
    """The calls of one turn. One that acts and only repeats the last one of its kind is refused (J3, K4): a model that
    stammers means one call. Sending is one kind, changing things the other.
    """
    last: dict[bool, str] = {}
    for each in prepared:
        if isinstance(each, Ready) and each.entry.acts_once:
            changes = each.entry.changes_things
            said = json.dumps([each.entry.host_name, each.values], sort_keys=True)
            if said == last.get(changes):
                each = Refused(each.call, ErrorCode.LIMIT, SAID_BEFORE, each.entry)
            last[changes] = said
        yield each


def _label(prepared: Ready | Refused) -> str:
    """The tool's name as people know it (D1)."""
    return prepared.entry.label if prepared.entry else prepared.call.name


def _timed_out(seconds: float | None) -> str:
    limit = f"within {seconds:g} seconds" if seconds is not None else "in time"
    return f"no answer came {limit}; the tool may still be running, so a second call may do the work twice"
