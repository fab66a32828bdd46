"""The turn loop: the only place where turn order is decided.

```
turn ─▸ calls? ─▸ tools ────┬─▸ steering ─▸ end, where no tools ran and nobody spoke
  ▲        └ none ─▸ settle ┘      │
  └────────────────────────────────┘
```
Past the last allowed round, or near the deadline, a turn is a conclusion: tools are not run any more (D6, G3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from callformats import without_thoughts
from runner.consent.desk import Desk
from runner.conversation.readable import is_readable
from runner.conversation.units import AssistantTurn, Text, UserTurn
from runner.host.deadline import Deadline
from runner.loop.loop_detection import LoopDetection, Seen, Verdict
from runner.loop.policy import Again, Go, Halt, Policy, Stop
from runner.loop.rounds import CUT_OFF, NO_MORE_TOOLS, Round, Rounds
from runner.loop.turn import BrokenOff, Turns
from runner.loop.view import RunView
from runner.models.reply import Reply
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Outcome

CONCLUDE = "[Time is nearly up. Answer now from what you know, without tools, and say what is missing.]"
"""Asked as a user turn, in the prompt only, where no refused call says it already."""

REPEATED = "[This has been called before with the same result. Do something else, or answer from what you know.]"
CONCLUDE_REPEATED = (
    "[The same calls bring the same results. Answer now from what you know, without tools, and say what is missing.]"
)
CONCLUDE_IDLE = (
    "[None of your last calls could be run. Answer now from what you know, without tools, and say what is missing.]"
)
"""The same for a run that goes in circles (K9)."""


class Conclusion(StrEnum):
    """Why the model has to answer without more tools (D6, G3, K9, K10)."""

    ROUNDS = "rounds"
    TIME = "time"
    REPETITION = "repetition"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the loop ended by itself.

    `cut`: the last reply reached the model's length limit; `filtered`: a filter of its provider ended it. `concluded`:
    why it had to answer without more tools, None: it had not. `wordless`: it said nothing. `silent`: every tool of the
    last round asked to end here (D5), so an empty answer is meant. `stop`: why the policy ended it, None when it did
    not (S3). `asks`: calls wait for consent (M2).
    """

    cut: bool = False
    filtered: bool = False
    concluded: Conclusion | None = None
    wordless: bool = False
    silent: bool = False
    stop: Stop | None = None
    asks: bool = False


class FollowUps(Protocol):
    """What people say while a run works; `Steering` of the Host, or nothing."""

    async def pull(self) -> UserTurn | None:
        """Everything said since the last pull as one user turn; None when nobody spoke."""

    def answered(self) -> None:
        """The model has replied to everything said so far."""


class Loop:
    """Model turns, tools and follow-ups, until the model has answered and nobody has said anything more."""

    def __init__(
        self,
        view: RunView,
        turns: Turns,
        rounds: Rounds,
        steering: FollowUps,
        deadline: Deadline,
        settle: Callable[[Ending], Awaitable[UserTurn | None]],
        *,
        max_rounds: int,
        clock: Callable[[], float],
        policy: Policy,
        overhear: Callable[[Reply, Catalogue], Awaitable[None]] | None = None,
        consent: Desk | None = None,
    ) -> None:
        self._view = view
        self._turns = turns
        self._rounds = rounds
        self._steering = steering
        self._deadline = deadline
        self._settle = settle
        self._max_rounds = max_rounds
        self._clock = clock
        self._policy = policy
        self._overhear = overhear
        self._consent = consent
        self._concluding: Conclusion | None = None
        self._detection = LoopDetection()

    async def run(self) -> Ending:
        """Runs to the end of the conversation's turn.

        What has to be settled before the end comes before the last pull; after that nothing is awaited (G1). What was
        said while it was settled makes the run go on (L1).
        """
        await self._mind_consent()
        while True:
            self._conclude_when_late()
            try:
                reply = await self._turns.take(conclude=self._concluding is not None)
            except BrokenOff as broken:
                if not await self._goes_on_after(broken):
                    raise
                continue
            self._steering.answered()
            going_on, ending = await self._after(reply)
            said = None if going_on else await self._settle(ending)
            said = said or await self._steering.pull()
            if said is not None:
                self._hear(said)
                await self._mind_consent()
            elif not going_on:
                return ending

    async def _mind_consent(self) -> None:
        """Do what came of a request for consent: run the calls, as if their results had just come, or tell why not."""
        decided = await self._consent.decided() if self._consent is not None else None
        if decided is None or self._consent is None:
            return
        if decided.told is not None:
            self._view.add(UserTurn((Text(decided.told),)))
        if decided.calls:
            done = await self._rounds.agreed(decided, self._deadline.wrap_up, self._consent.place.sandbox)
            self._add(done)
            if not len(self._rounds.catalogue):
                # The last tool is gone: some providers refuse calls where none is listed, so these become words.
                self._view.withdraw({call.name for call in done.turn.calls})
            self._policy.ran(done.outcomes)

    async def _goes_on_after(self, broken: BrokenOff) -> bool:
        """Whether somebody said something more: then the half reply is history, and the run answers that (G1)."""
        said = await self._steering.pull()
        if said is None:
            return False
        words = without_thoughts(broken.half)
        half = words if is_readable(words) else broken.half
        self._view.add(AssistantTurn(half, author=broken.model_id))
        self._hear(said)
        await self._mind_consent()
        return True

    def _hear(self, said: UserTurn) -> None:
        self._view.add(said)
        self._policy.asked(said.text())
        self._turns.answer_anew()
        self._detection.renew()
        if self._concluding is Conclusion.REPETITION:
            self._concluding = None

    async def _after(self, reply: Reply) -> tuple[bool, Ending]:
        """What a reply leads to: whether the model has to be asked again, and the ending if not."""
        if self._overhear is not None:
            await self._overhear(reply, self._rounds.catalogue)
        step = self._policy.judge(reply, self._rounds.catalogue, concluding=self._concluding is not None)
        if isinstance(step, Halt):
            return self._halt(step)
        if isinstance(step, Again):
            if step.note is not None:
                self._turns.note(step.note)
            return True, Ending()
        reply = step.reply
        self._turns.reveal(reply.held)
        self._turns.end(calls=bool(reply.calls))
        if not reply.calls or self._concluding:
            self._remember(reply)
            return False, Ending(reply.cut, reply.filtered, self._concluding, wordless=reply.wordless)
        return await self._after_calls(step)

    async def _after_calls(self, step: Go) -> tuple[bool, Ending]:
        """Make the calls of a reply; whether the model has to be asked again, and the ending if not."""
        done = await self._round(step)
        self._add(done)
        if done.asks:
            return False, Ending(asks=True)
        halt = self._policy.ran(done.outcomes)
        if halt is not None and not done.terminated:
            return self._halt(halt)
        if not step.small and not done.terminated:
            self._mind_circles(done.outcomes)
        return not done.terminated, Ending(silent=done.terminated)

    def _add(self, done: Round) -> None:
        self._view.add(done.turn)
        if done.offers is not None:
            self._view.offer(done.offers)
        if done.pictures is not None:
            self._view.add(done.pictures)

    def _mind_circles(self, outcomes: Sequence[Outcome]) -> None:
        """Tell the model that it repeats itself, or let it conclude (K9); a small one is stopped sooner (S3)."""
        ran = any(outcome.ran or (outcome.entry is not None and outcome.entry.own) for outcome in outcomes)
        verdict = self._detection.after([_seen(outcome) for outcome in outcomes], ran=ran)
        if self._concluding is not None:
            return
        if verdict is Verdict.TELL:
            self._view.add(UserTurn((Text(REPEATED),)))
        elif verdict is not Verdict.GO_ON:
            words = CONCLUDE_IDLE if verdict is Verdict.IDLE else CONCLUDE_REPEATED
            self._conclude(Conclusion.REPETITION, words)

    def _halt(self, halt: Halt) -> tuple[bool, Ending]:
        for note in halt.notes:
            self._turns.note(note)
        return False, Ending(stop=halt.why)

    async def _round(self, step: Go) -> Round:
        reply = step.reply
        if self._rounds.count >= self._max_rounds:
            self._conclude(Conclusion.ROUNDS)
        elif self._deadline.is_near(self._clock()):
            self._conclude(Conclusion.TIME)
        if self._concluding is not None:
            return await self._rounds.refuse(reply, NO_MORE_TOOLS)
        if reply.cut:
            return await self._rounds.refuse(reply, CUT_OFF)
        return await self._rounds.run(reply, self._deadline.wrap_up, one_by_one=step.one_by_one, small=step.small)

    def _conclude_when_late(self) -> None:
        """After a tool round that reached the deadline's shadow, the next turn is the last."""
        if self._concluding is None and self._rounds.count and self._deadline.is_near(self._clock()):
            self._conclude(Conclusion.TIME, CONCLUDE)

    def _conclude(self, why: Conclusion, words: str | None = None) -> None:
        """From the next turn on the model answers without tools. `words` ask it to where no refused call says so."""
        self._concluding = self._concluding or why
        if words is not None:
            self._view.add(UserTurn((Text(words),)))

    def _remember(self, reply: Reply) -> None:
        if is_readable(reply.said):
            self._view.add(AssistantTurn(reply.said, author=reply.model_id, provider_fields=reply.provider_fields))


def _seen(outcome: Outcome) -> Seen:
    """That a call goes on as a job is no result yet: a second time it is the same again (S4)."""
    call, rendered, entry = outcome.call, outcome.rendered, outcome.entry
    pictures = (image.base64 or image.url or "" for image in rendered.images)
    result = () if rendered.pending else (rendered.body, *pictures)
    reads = entry is not None and entry.known_to_read
    return Seen.of(call.name, call.arguments, *result, failed=rendered.error is not None, reads=reads)
