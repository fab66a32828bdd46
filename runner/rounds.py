"""Rounds of tools: the calls of one reply become one unit with all its results (D2–D9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from config.notices import Notice
from runner import clock
from runner.conversation.units import AssistantTurn, Part, Text, UserTurn
from runner.memory import ToolMemory
from runner.models.reply import Reply
from runner.progress import TOOL_PATIENCE, Progress
from runner.tools.call_ids import CallIds
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Batch, Executor, Outcome
from runner.tools.prepare import Ready, Refused, WantedCall, prepare
from runner.tools.results import ErrorCode

NO_MORE_TOOLS = (
    "not run: no more tools can be used for this message. Answer now from what you know, and say what is missing."
)
CUT_OFF = (
    "not run: your reply reached its length limit inside this call. Repeat the call alone, with shorter arguments."
)

UNKNOWN = "(unknown)"
"""Stands in the counts for every tool that there is not."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round brought. `pictures` follow the results in a user turn; `terminated`: D5 ends the run."""

    turn: AssistantTurn
    pictures: UserTurn | None
    outcomes: tuple[Outcome, ...]
    terminated: bool


class Rounds:
    """The tools of one run.

    `count` is how many rounds there were so far, `tools` how many calls by the tool's name, `failed` how many of them
    brought an error; `seconds` is what running them took.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        executor: Executor,
        progress: Progress,
        say: Callable[..., str],
        ids: CallIds,
        memory: ToolMemory,
    ) -> None:
        self.catalogue = catalogue
        self._memory = memory
        self._executor = executor
        self._progress = progress
        self._say = say
        self._ids = ids
        self.count = 0
        self.tools: Counter[str] = Counter()
        self.failed = 0
        self.seconds = 0.0

    async def run(self, reply: Reply, until: float | None, *, one_by_one: bool = False) -> Round:
        """Run the calls of a reply; what is open at `until` (the loop's clock) gets a result that says so (D9).

        `one_by_one`: never two at once, whatever the binding says (S3).
        """
        self.count += 1
        wanted = self._wanted(reply)
        executor = replace(self._executor, serial=True) if one_by_one else self._executor
        batch = executor.batch(wanted, self.catalogue)
        names = ", ".join(dict.fromkeys(call.name for call in wanted))
        with self._progress.notice(self._say(Notice.TOOL_RUNNING, tool=names), TOOL_PATIENCE):
            began = clock.now()
            try:
                outcomes = await batch.run(until=until)
            finally:
                self.seconds += clock.now() - began
        return self._round(reply, outcomes, terminated=batch.all_terminate())

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

    def _wanted(self, reply: Reply) -> list[WantedCall]:
        return [
            WantedCall(self._ids.claim(call.id), call.name, call.arguments, call.provider_fields, call.certain)
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
        self.tools.update(outcome.entry.name if outcome.entry else UNKNOWN for outcome in outcomes)
        self.failed += sum(outcome.rendered.error is not None for outcome in outcomes)
        return Round(turn, _pictures(outcomes), outcomes, terminated)


def _pictures(outcomes: Sequence[Outcome]) -> UserTurn | None:
    """Pictures that tools returned, as a user turn: many providers refuse them in tool messages (D4)."""
    parts: list[Part] = []
    for outcome in outcomes:
        if outcome.rendered.images:
            parts += [Text(f"[Pictures returned by {outcome.call.name}]"), *outcome.rendered.images]
    return UserTurn(tuple(parts)) if parts else None
