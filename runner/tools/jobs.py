"""Slow calls that go on as jobs while the model does something else (S4).

```
call ─▸ its soft limit ─▸ a job: the model gets an id ─┬▸ `job_output` waits a while, then gives the result
                                                      └▸ the run ends: it is no longer waited for
```
A job is a call that the Host has not answered yet, nothing more: the Host neither stops it nor shows what it printed,
and its own limit ends the waiting. Processes are the sandbox's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from runner.conversation.cut import head
from runner.conversation.request import ToolSpec
from runner.guards import defang
from runner.host import clock
from runner.host.events import Json
from runner.tools.catalogue import Entry, Kind
from runner.tools.results import ErrorCode, Rendered, Renderer

SOFT_SECONDS: float = 60.0
"""From here on a call goes on as a job. Most tools answer within it, and then nothing is different."""

SMALL_SOFT_SECONDS: float = 20.0
"""The same for a small model: less than the 30 seconds after which the Host ends a command that names no limit."""

MOST_OPEN: Final = 4
"""So many calls of a run may be jobs at once, half of its slots; further ones are waited for to their end."""

JOB_OUTPUT: Final = "job_output"
JOB_SPEC: Final = ToolSpec(
    JOB_OUTPUT,
    "Waits a while for a call that goes on as a job, and gives its result once it is there.",
    {
        "type": "object",
        "properties": {"job": {"type": "string", "description": "for example job_1"}},
        "required": ["job"],
    },
)
JOB_ENTRY: Final = Entry(JOB_SPEC, JOB_OUTPUT, Kind.BUILTIN, read_only=True, known_to_read=True, own=True)

STARTED: Final = (
    "{tool} has not answered within {seconds:.0f} seconds and goes on as {job}: slow work, or a server that never "
    'ends. What it prints is not known before it ends.{listening} Call {tool_name} with {{"job": "{job}"}} to wait '
    "for its result, or do something else first. Do not make the same call again. Once you answer, it is no longer "
    "waited for."
)
RUNNING: Final = (
    "{job} ({tool}) still runs after {seconds:.0f} seconds and has no result yet. Wait on, do something else, or "
    "answer and say that it may go on."
)
BROKEN: Final = "the Host broke {job} ({tool}) off; it may have run"
UNKNOWN: Final = "there is no job {asked}. The jobs are: {jobs}"
IN_ORDER: Final = (
    "not run: the call before it goes on as {job}, and calls run in their order. Make it again if it needs no result "
    "of that job."
)
LISTENING: Final = " Ports that something in the sandbox listens on now: {ports}."
SILENT: Final = " Nothing in the sandbox listens on a port yet."
BUSY: Final = " What listens was not to be learned: the sandbox may take no other command until then."


@dataclass(frozen=True, slots=True)
class Job:
    """One call that goes on. `began`: the event loop's time at which the Host was asked."""

    id: str
    tool: str
    task: asyncio.Task[Rendered]
    began: float

    @property
    def rendered(self) -> Rendered | None:
        """Its result; None while there is none, or when it was given up."""
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


class Jobs:
    """The slow calls of one run. Nothing of them outlives `kept`."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._jobs: dict[str, Job] = {}

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Calls may be begun inside; what is still open at the end is cancelled, however the end came."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                for job in self._jobs.values():
                    job.task.cancel()

    @property
    def any(self) -> bool:
        """Whether a call has ever become a job in this run."""
        return bool(self._jobs)

    @property
    def without_result(self) -> tuple[Job, ...]:
        """Those that still run, and at the end those that were given up."""
        return tuple(job for job in self._jobs.values() if job.rendered is None)

    def begin(self, call: Coroutine[None, None, Rendered]) -> asyncio.Task[Rendered]:
        """A call as a task of its own, so that it can go on without who asked for it. Raises RuntimeError outside of
        `kept`."""
        if self._group is None:
            raise RuntimeError("jobs are not kept")
        return self._group.create_task(call)

    async def ended(self, task: asyncio.Task[Rendered], soft_seconds: float) -> bool:
        """Whether a call ended within its soft limit; it is waited for to its end where no room is left for a job.

        Cancelling this cancels the call.
        """
        try:
            await asyncio.wait({task}, timeout=soft_seconds)
            if sum(not job.task.done() for job in self._jobs.values()) >= MOST_OPEN:
                await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return task.done()

    def keep(self, task: asyncio.Task[Rendered], tool: str, began: float, release: Callable[[], None]) -> Job:
        """Make a job of a call. `release` is called once it ends: it holds its slots until then (D2)."""
        job = Job(f"job_{len(self._jobs) + 1}", tool, task, began)
        self._jobs[job.id] = job
        task.add_done_callback(lambda _: release())
        return job

    def named(self, values: Mapping[str, Json]) -> Job | None:
        """The job that the arguments of `job_output` name."""
        asked = values.get("job")
        return self._jobs.get(asked.strip()) if isinstance(asked, str) else None

    async def output(self, values: Mapping[str, Json], renderer: Renderer, seconds: float) -> Rendered:
        """What `job_output` answers: the result itself, as often as it is asked for; waits `seconds` for it."""
        job = self.named(values)
        if job is None:
            unknown = UNKNOWN.format(asked=_said(values.get("job")), jobs=self._listed())
            return renderer.error(ErrorCode.INVALID_ARGUMENTS, unknown)
        await asyncio.wait({job.task}, timeout=seconds)
        if job.rendered is not None:
            return job.rendered
        if job.task.done():
            return renderer.error(ErrorCode.FAILED, BROKEN.format(job=job.id, tool=job.tool))
        return _pending(job, RUNNING.format(job=job.id, tool=job.tool, seconds=_age(job)))

    def _listed(self) -> str:
        return ", ".join(f"{job.id} ({job.tool})" for job in self._jobs.values())


def started(job: Job, ports: tuple[int, ...] | None, *, asked: bool) -> Rendered:
    """What the model reads in place of the call's result: the id and what is known.

    `ports` listen in the sandbox; None: it gave no answer. `asked`: whether that was asked at all.
    """
    listening = _on_ports(ports) if asked else ""
    words = STARTED.format(tool=job.tool, job=job.id, seconds=_age(job), listening=listening, tool_name=JOB_OUTPUT)
    return _pending(job, words)


def _on_ports(ports: tuple[int, ...] | None) -> str:
    if ports is None:
        return BUSY
    return LISTENING.format(ports=", ".join(map(str, ports))) if ports else SILENT


def _pending(job: Job, words: str) -> Rendered:
    return Rendered(words, words, event_payload={"job": job.id, "running": True}, pending=True)


def _age(job: Job) -> float:
    return clock.now() - job.began


def _said(name: Json) -> str:
    return repr(defang(head(name, 40))) if isinstance(name, str) else "of that name"
