"""Rounds of tools: the calls of one reply become one unit with all its results (D2–D9, S4, S5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from config.notices import Notice
from runner.consent.desk import Decided, Desk
from runner.consent.revive import revived
from runner.conversation.call_ids import CallIds
from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Part, Text, ToolImage, UserTurn
from runner.host import clock
from runner.loop.policy import Evidence
from runner.loop.progress import TOOL_PATIENCE, Progress
from runner.models.reply import Reply
from runner.tools import jobs
from runner.tools.catalogue import ACTIVATE, Catalogue, Kind
from runner.tools.execute import Batch, Executor, Outcome
from runner.tools.memory import ToolMemory
from runner.tools.prepare import Ready, Refused, WantedCall, prepare
from runner.tools.results import ErrorCode

NO_MORE_TOOLS = (
    "not run: no more tools can be used for this message. Answer now from what you know, and say what is missing."
)
CUT_OFF = (
    "not run: your reply reached its length limit inside this call. Repeat the call alone, with shorter arguments."
)
LOOK_SECONDS = 5.0
"""How long a console or log may take to be read after an action."""

SKILL_SECONDS = 60.0
"""How long a skill may take to be active again for calls that were agreed to (M4)."""

UNKNOWN = "(unknown)"
"""Stands in the counts for every tool that there is not."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round brought. `pictures` follow the results in a user turn; `terminated`: D5 ends the run.

    `offers`: a tool that is on offer from now on, since a call of this round became the first job (S4). `asks`: calls
    of it wait for consent, and people were asked (M2).
    """

    turn: AssistantTurn
    pictures: UserTurn | None
    outcomes: tuple[Outcome, ...]
    terminated: bool
    offers: ToolSpec | None = None
    asks: bool = False


class Rounds:
    """The tools of one run.

    `count` is how many rounds there were so far, `tools` how many calls by the tool's name for people, `failed` how
    many of them brought an error; `seconds` is what running them took.
    `evidence`: what consoles and logs have told; None: nobody looks at them (S5). `consent`: who asks before tools run;
    None: nobody does (M1).
    """

    def __init__(
        self,
        catalogue: Catalogue,
        executor: Executor,
        progress: Progress,
        say: Callable[..., str],
        ids: CallIds,
        memory: ToolMemory,
        evidence: Evidence | None = None,
        consent: Desk | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._memory = memory
        self._evidence = evidence
        self._consent = consent
        self._executor = executor
        self._progress = progress
        self._say = say
        self._ids = ids
        self.count = 0
        self.tools: Counter[str] = Counter()
        self.failed = 0
        self.seconds = 0.0

    async def run(self, reply: Reply, until: float | None, *, one_by_one: bool = False, small: bool = False) -> Round:
        """Run the calls of a reply; what is open at `until` (the loop's clock) gets a result that says so (D9).

        `one_by_one`: never two at once, whatever the binding says (S3). `small`: slow calls become jobs sooner (S4),
        and actions bring new errors along (S5).
        """
        self.count += 1
        wanted = self._wanted(reply)
        executor = replace(
            self._executor,
            serial=one_by_one or self._executor.serial,
            soft_seconds=jobs.SMALL_SOFT_SECONDS if small else jobs.SOFT_SECONDS,
        )
        batch = executor.batch(wanted, self.catalogue)
        with self._progress.notice(self._say(Notice.TOOL_RUNNING, tool=self._spoken(wanted)), TOOL_PATIENCE):
            outcomes = await self._ran(batch, until)
            if small and self._evidence is not None:
                outcomes = await self._with_evidence(self._evidence, outcomes, until)
        if self._consent is None:
            return self._round(reply, outcomes, terminated=batch.all_terminate())
        self._consent.skills += _activated(outcomes)
        if not self._consent.holds:
            return self._round(reply, outcomes, terminated=batch.all_terminate())
        why_not = await self._consent.ask()
        if why_not is None:
            return replace(self._round(reply, outcomes, terminated=False), asks=True)
        return self._round(reply, self._unasked(outcomes, why_not), terminated=False)

    async def _ran(self, batch: Batch, until: float | None) -> tuple[Outcome, ...]:
        began = clock.now()
        try:
            return await batch.run(until=until)
        finally:
            self.seconds += clock.now() - began

    def _unasked(self, outcomes: tuple[Outcome, ...], why: str) -> tuple[Outcome, ...]:
        """What was to wait does not: nobody was asked."""
        refused = self._executor.renderer.error(ErrorCode.LIMIT, why)
        return tuple(
            replace(outcome, rendered=refused) if outcome.rendered.error is ErrorCode.WAITING else outcome
            for outcome in outcomes
        )

    async def agreed(self, decided: Decided, until: float | None, sandbox: str) -> Round:
        """Run what a person agreed to, exactly as it was shown, and nothing else (M3).

        `sandbox`: names this run's sandbox. What is gone or another tool by now is not run, and the person is told so.
        """
        self.count += 1
        lost = await self._lost_skill(decided)
        ready = revived(decided, self.catalogue, self._ids.claim, sandbox=sandbox, lost_skill=lost)
        with self._progress.notice(self._say(Notice.TOOL_RUNNING, tool=_labels(ready)), TOOL_PATIENCE):
            outcomes = await self._ran(Batch(self._executor, ready), until)
        changed = [one for one in ready if isinstance(one, Refused)]
        if changed and self._consent is not None:
            self._consent.note(self._say(Notice.CONSENT_CHANGED_NOTE, tools=_labels(changed)))
        self._memory.add(outcomes, agreed_by=decided.by)
        turn = AssistantTurn("", tuple(one.call for one in outcomes), tuple(one.result for one in outcomes))
        self._count(outcomes)
        return Round(turn, _pictures(outcomes), outcomes, False, self._offers())

    async def _lost_skill(self, decided: Decided) -> str | None:
        """Activate again what ended with the run that asked; the first skill that cannot be (M4)."""
        entry = next((one for one in self.catalogue if one.kind is Kind.SKILL and one.host_name == ACTIVATE), None)
        for skill in decided.skills:
            if entry is None or await self._executor.aside(entry, {"skill_name": skill}, SKILL_SECONDS) is None:
                return skill
        return None

    async def _with_evidence(
        self, evidence: Evidence, outcomes: tuple[Outcome, ...], until: float | None
    ) -> tuple[Outcome, ...]:
        """The outcomes with the new errors that their tools report; a look that fails costs nothing but itself."""
        added = list(outcomes)
        for look in evidence.looks(outcomes, self.catalogue):
            left = LOOK_SECONDS if until is None else min(LOOK_SECONDS, until - clock.now())
            told = await self._executor.aside(look.witness, {}, left) if left > 0 else None
            if told is not None:
                limit = self._executor.renderer.result_chars
                rendered = evidence.with_news(added[look.at].rendered, look.witness, told, limit=limit)
                added[look.at] = replace(added[look.at], rendered=rendered)
        return tuple(added)

    async def refuse(self, reply: Reply, why: str) -> Round:
        """Answer every call of a reply without running any. It counts as a round: a model may not go on like this."""
        self.count += 1
        prepared = [prepare(call, self.catalogue) for call in self._wanted(reply)]
        refused: Sequence[Ready | Refused] = [Refused(each.call, ErrorCode.LIMIT, why, each.entry) for each in prepared]
        return self._round(reply, await Batch(self._executor, refused).run(), terminated=False)

    def withdraw_sandbox(self) -> frozenset[str]:
        """Take the sandbox tools out of the catalogue; their names as the model knows them (H1)."""
        gone = frozenset(entry.name for entry in self.catalogue if entry.is_sandbox)
        self.catalogue = self.catalogue.only(lambda entry: not entry.is_sandbox)
        return gone

    def _spoken(self, wanted: Sequence[WantedCall]) -> str:
        """The tools that a person waits for; in place of a question for a job, those that still run."""
        kept = self._executor.jobs
        names = [self.catalogue.label(call.name) for call in wanted if call.name != jobs.JOB_OUTPUT]
        if kept is not None and len(names) < len(wanted):
            names += [job.tool for job in kept.without_result]
        return ", ".join(dict.fromkeys(names))

    def _wanted(self, reply: Reply) -> list[WantedCall]:
        return [
            WantedCall(
                self._ids.claim(call.id, reply.model_id), call.name, call.arguments, call.provider_fields, call.certain
            )
            for call in reply.calls
        ]

    def _round(self, reply: Reply, outcomes: tuple[Outcome, ...], *, terminated: bool) -> Round:
        turn = AssistantTurn(
            reply.said,
            tuple(outcome.call for outcome in outcomes),
            tuple(outcome.result for outcome in outcomes),
            author=reply.model_id,
            provider_fields=reply.provider_fields,
        )
        self._memory.add(outcomes, author=reply.model_id, said=reply.said)
        self._count(outcomes)
        return Round(turn, _pictures(outcomes), outcomes, terminated, self._offers())

    def _count(self, outcomes: tuple[Outcome, ...]) -> None:
        # What a model calls by a name of its own making may be anything.
        self.tools.update(outcome.entry.label if outcome.entry else UNKNOWN for outcome in outcomes)
        self.failed += sum(outcome.rendered.error not in (None, ErrorCode.WAITING) for outcome in outcomes)

    def _offers(self) -> ToolSpec | None:
        """The tool for the output of jobs, once there is a job."""
        kept = self._executor.jobs
        if kept is None or not kept.any or self.catalogue.get(jobs.JOB_OUTPUT) is not None:
            return None
        self.catalogue = self.catalogue.with_own(jobs.JOB_ENTRY)
        return jobs.JOB_SPEC


def _activated(outcomes: Sequence[Outcome]) -> list[str]:
    """The skills that these calls have activated, for this run alone."""
    activated = (one for one in outcomes if one.entry is not None and one.entry.kind is Kind.SKILL)
    named = (
        json.loads(one.call.arguments).get("skill_name")
        for one in activated
        if one.ran and one.rendered.error is None and one.entry is not None and one.entry.host_name == ACTIVATE
    )
    return [name for name in named if isinstance(name, str)]


def _labels(prepared: Sequence[Ready | Refused]) -> str:
    """Names of the tools for people."""
    return ", ".join(dict.fromkeys(one.entry.label if one.entry else one.call.name for one in prepared))


def _pictures(outcomes: Sequence[Outcome]) -> UserTurn | None:
    """Pictures that tools returned, as a user turn: many providers refuse them in tool messages (D4)."""
    parts: list[Part] = []
    for outcome in outcomes:
        if outcome.rendered.images:
            pictures = (ToolImage(image.base64, image.url) for image in outcome.rendered.images)
            parts += [Text(f"[Pictures returned by {outcome.call.name}]"), *pictures]
    return UserTurn(tuple(parts)) if parts else None
