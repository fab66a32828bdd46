"""What this run's tools said, kept for the runs after it (B6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.conversation.record import AGREED, KEY, RecordedCall, build, read
from runner.host.events import Json
from runner.host.port import Host
from runner.tools.execute import Outcome
from runner.tools.results import ErrorCode

UNSAID_KEY = "runner.tools.unsaid"
"""Conversation state: the record of a run that ended without an answer it could ride on (D5)."""

NEVER_CAME = "no result came while the run went on; the work may have been done all the same"
"""What later runs read of a call that was still a job at the end (S4)."""


@dataclass(frozen=True, slots=True)
class _Round:
    outcomes: tuple[Outcome, ...]
    author: str
    said: str
    agreed_by: str | None

    def recorded(self, author: str | None) -> tuple[RecordedCall, ...]:
        """The calls as they are kept; with their ids where `author` wrote them."""
        calls = [_recorded(outcome) for outcome in self.outcomes]
        if author and self.author == author:
            calls = [replace(call, id=outcome.call.id) for call, outcome in zip(calls, self.outcomes, strict=True)]
        return _agreed_to((replace(calls[0], lead_in=self.said), *calls[1:]), self.agreed_by)


class ToolMemory:
    """Collects the calls of a run, after those that an earlier run could not put into an answer."""

    def __init__(self, unsaid: Sequence[Sequence[RecordedCall]], *, wanted: bool) -> None:
        # Their ids were those of another run's model, perhaps of another provider (K2).
        self._unsaid = [tuple(replace(call, id="") for call in turn) for turn in unsaid] if wanted else []
        self._rounds: list[_Round] = []
        self._wanted = wanted
        self._owed = bool(self._unsaid)

    def add(
        self, outcomes: Sequence[Outcome], *, author: str = "", said: str = "", agreed_by: str | None = None
    ) -> None:
        """One round of tools, by which model, and what it said before the calls. The loop's own are left out: later
        runs know nothing of this one's jobs.

        `agreed_by`: who consented to these calls (M3).
        """
        others = tuple(outcome for outcome in outcomes if outcome.entry is None or not outcome.entry.own)
        if self._wanted and others:
            self._rounds.append(_Round(others, author, said, agreed_by))

    def record(self, speakers: Mapping[str, str]) -> dict[str, Json] | None:
        """The record for the final message; None when there is nothing to remember."""
        return build(self._turns(), speakers, self._author)

    @property
    def _author(self) -> str | None:
        """The model whose ids are kept: the one that called last."""
        return self._rounds[-1].author or None if self._rounds else None

    async def put_aside(self, host: Host) -> None:
        """Keep the record in state, because no answer will carry it. Raises HostCallFailed."""
        if (record := build(self._turns(), author=self._author)) is not None:
            await host.set_state(UNSAID_KEY, {KEY: record})
            self._owed = True  # should the run answer after all, it rides on that answer

    def _turns(self) -> list[tuple[RecordedCall, ...]]:
        return [*self._unsaid, *(done.recorded(self._author) for done in self._rounds)]

    async def settle(self, host: Host) -> None:
        """Forget what an earlier run put aside: this run's answer carries it. Raises HostCallFailed."""
        if self._owed:
            await host.set_state(UNSAID_KEY, None)


def unsaid_turns(state: Mapping[str, object]) -> tuple[tuple[RecordedCall, ...], ...]:
    """The calls an earlier run put aside, from the context's state snapshot; none without a valid record."""
    record = read(state.get(UNSAID_KEY))
    return record.turns if record else ()


def _agreed_to(turn: tuple[RecordedCall, ...], by: str | None) -> tuple[RecordedCall, ...]:
    """The calls with who agreed to them before their results."""
    if by is None:
        return turn
    return tuple(replace(call, result=f"{AGREED.format(by=by)}\n{call.result}") for call in turn)


def _recorded(outcome: Outcome) -> RecordedCall:
    """A call with what came of it in the end: of a job, the result of the job."""
    call, rendered = outcome.call, outcome.job.rendered if outcome.job else outcome.rendered
    if rendered is None:
        return RecordedCall(call.name, call.arguments, NEVER_CAME, ErrorCode.TIMEOUT.value)
    return RecordedCall(call.name, call.arguments, rendered.body, rendered.error.value if rendered.error else None)
