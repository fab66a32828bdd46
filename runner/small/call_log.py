"""What the calls of a run came to, as the policy judges by it (S3, S4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from runner.conversation.units import AssistantTurn
from runner.loop.loop_detection import Seen
from runner.small import answers
from runner.small.answers import Done
from runner.small.earlier import calls_of
from runner.small.loop_detection import Circle, Circles
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Outcome


class Trail:
    """`done` are the finished calls, oldest first: those that an earlier run left without an answer, then the run's."""

    def __init__(self) -> None:
        self.done: list[Done] = []
        self._circles = Circles()
        self._awaited: dict[str, str] = {}

    @property
    def ends_on_failure(self) -> bool:
        return bool(self.done) and self.done[-1].failed

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that were called, each once, the one used last first."""
        return tuple(dict.fromkeys(done.name for done in reversed(self.done)))

    @property
    def codes(self) -> frozenset[str]:
        """The error codes that the model has seen."""
        return frozenset(done.code for done in self.done if done.code)

    @property
    def gist(self) -> str:
        """The beginning of the last result; empty without one."""
        return answers.gist(self.done)

    def brought(self, tool: str) -> bool:
        """Whether a call of this tool has come to something."""
        return any(done.name == tool and not done.failed for done in self.done)

    def left_open(self, *, can_read: bool) -> str | None:
        """What to say to an answer while work, or the result of a job, seems open; None when nothing does."""
        return answers.leaves_open(self.done, can_read=can_read) or answers.leaves_jobs(self._awaited)

    def add(self, outcome: Outcome) -> Circle:
        """A call of this run is over, or goes on as a job whose result the model has not seen."""
        if outcome.job is not None and outcome.rendered.pending:
            self._awaited[outcome.job.id] = outcome.job.tool
        elif outcome.job is not None:
            self._awaited.pop(outcome.job.id, None)
        return self._finished(_done(outcome), reads=outcome.entry is not None and outcome.entry.read_only)

    def recall(self, turns: Sequence[AssistantTurn], catalogue: Catalogue) -> None:
        """Calls that an earlier run finished and gave no answer to: they count as this run's own (S3)."""
        for done in calls_of(turns, catalogue):
            self._finished(done, reads=done.reads)

    def renew(self) -> None:
        """Somebody said something new: what was done before may be done again."""
        self._circles.renew()

    def _finished(self, done: Done, *, reads: bool) -> Circle:
        self.done.append(done)
        return self._circles.add(Seen.of(done.name, done.arguments, done.body, failed=done.failed, reads=reads))


def _done(outcome: Outcome) -> Done:
    """A call with its result. A call that goes on as a job has no result yet, and asking for one reads nothing (S4)."""
    call, rendered, entry = outcome.call, outcome.rendered, outcome.entry
    reads = entry is not None and entry.read_only and not entry.own
    body = "" if rendered.pending else rendered.body
    return Done(call.name, call.arguments, body, rendered.error.value if rendered.error else None, reads)
