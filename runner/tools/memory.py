"""What this run's tools said, kept for the runs after it (B6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from runner.conversation.record import AGREED, KEY, RecordedCall, build, read
from runner.host.events import Json
from runner.host.port import Host
from runner.tools.execute import Outcome
from runner.tools.results import ErrorCode

UNSAID_KEY = "runner.tools.unsaid"
"""Conversation state: the record of a run that ended without an answer it could ride on (D5)."""

NEVER_CAME = "no result came while the run went on; the work may have been done all the same"
"""What later runs read of a call that was still a job at the end (S4)."""


class ToolMemory:
    """Collects the calls of a run, after those that an earlier run could not put into an answer."""

    def __init__(self, unsaid: Sequence[Sequence[RecordedCall]], *, wanted: bool) -> None:
        self._unsaid = [tuple(turn) for turn in unsaid] if wanted else []
        self._rounds: list[tuple[Outcome, ...]] = []
        self._agreed: dict[int, str] = {}
        self._wanted = wanted
        self._owed = bool(self._unsaid)

    def add(self, outcomes: Sequence[Outcome], agreed_by: str | None = None) -> None:
        """One round of tools. The loop's own are left out: later runs know nothing of this one's jobs.

        `agreed_by`: who consented to these calls (M3).
        """
        if agreed_by is not None:
            self._agreed[len(self._rounds)] = agreed_by
        others = tuple(outcome for outcome in outcomes if outcome.entry is None or not outcome.entry.own)
        if self._wanted and others:
            self._rounds.append(others)

    def record(self, speakers: Mapping[str, str]) -> dict[str, Json] | None:
        """The record for the final message; None when there is nothing to remember."""
        return build(self._turns(), speakers)

    async def put_aside(self, host: Host) -> None:
        """Keep the record in state, because no answer will carry it. Raises HostCallFailed."""
        if (record := build(self._turns())) is not None:
            await host.set_state(UNSAID_KEY, {KEY: record})
            self._owed = True  # should the run answer after all, it rides on that answer

    def _turns(self) -> list[tuple[RecordedCall, ...]]:
        rounds = (tuple(map(_recorded, outcomes)) for outcomes in self._rounds)
        return [*self._unsaid, *(_agreed_to(turn, self._agreed.get(at)) for at, turn in enumerate(rounds))]

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
