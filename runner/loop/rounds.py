"""Rounds of tools: the calls of one reply become one unit with all its results (D2–D9, S4, S5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from config.notices import Notice
from runner.conversation.call_ids import CallIds
from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Part, Text, ToolImage, UserTurn
from runner.host import clock
from runner.loop.policy import Evidence
from runner.loop.progress import TOOL_PATIENCE, Progress
from runner.models.reply import Reply
from runner.tools import jobs
from runner.tools.catalogue import Catalogue
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

UNKNOWN = "(unknown)"
"""Stands in the counts for every tool that there is not."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round brought. `pictures` follow the results in a user turn; `terminated`: D5 ends the run.

    `offers`: a tool that is on offer from now on, since a call of this round became the first job (S4).
    """

    turn: AssistantTurn
    pictures: UserTurn | None
    outcomes: tuple[Outcome, ...]
    terminated: bool
    offers: ToolSpec | None = None


class Rounds:
    """The tools of one run.

    `count` is how many rounds there were so far, `tools` how many calls by the tool's name for people, `failed` how
    many of them brought an error; `seconds` is what running them took.
    `evidence`: what consoles and logs have told; None: nobody looks at them (S5).
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
    ) -> None:
        self.catalogue = catalogue
        self._memory = memory
        self._evidence = evidence
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
            began = clock.now()
            try:
                outcomes = await batch.run(until=until)
            finally:
                self.seconds += clock.now() - began
            if small and self._evidence is not None:
                outcomes = await self._with_evidence(self._evidence, outcomes, until)
        return self._round(reply, outcomes, terminated=batch.all_terminate())

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
        self._memory.add(outcomes)
        # What a model calls by a name of its own making may be anything.
        self.tools.update(outcome.entry.label if outcome.entry else UNKNOWN for outcome in outcomes)
        self.failed += sum(outcome.rendered.error is not None for outcome in outcomes)
        return Round(turn, _pictures(outcomes), outcomes, terminated, self._offers())

    def _offers(self) -> ToolSpec | None:
        """The tool for the output of jobs, once there is a job."""
        kept = self._executor.jobs
        if kept is None or not kept.any or self.catalogue.get(jobs.JOB_OUTPUT) is not None:
            return None
        self.catalogue = self.catalogue.with_own(jobs.JOB_ENTRY)
        return jobs.JOB_SPEC


def _pictures(outcomes: Sequence[Outcome]) -> UserTurn | None:
    """Pictures that tools returned, as a user turn: many providers refuse them in tool messages (D4)."""
    parts: list[Part] = []
    for outcome in outcomes:
        if outcome.rendered.images:
            pictures = (ToolImage(image.base64, image.url) for image in outcome.rendered.images)
            parts += [Text(f"[Pictures returned by {outcome.call.name}]"), *pictures]
    return UserTurn(tuple(parts)) if parts else None
