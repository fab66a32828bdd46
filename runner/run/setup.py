"""The parts of one run, made from what was assembled: context, view, turns, rounds, steering."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.choices import ToolMode
from config.settings import Settings
from runner.channel.answering import Answering, sent_by
from runner.channel.delivery import Delivery
from runner.channel.outbox import Outbox
from runner.channel.steering import Search, Steering
from runner.channel.visible import Visible
from runner.consent.desk import Desk
from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint
from runner.context.compaction import Context, View, Wishes
from runner.context.meter import Meter
from runner.context.save_marks import SaveMarks
from runner.context.summary import Summarise, SummaryReply
from runner.context.tokens import Ruler, SharedTokenizer
from runner.conversation.call_ids import CallIds
from runner.conversation.request import Request
from runner.conversation.retrieval import retrieve
from runner.conversation.units import AssistantTurn, Reference, UserTurn
from runner.host import clock
from runner.host.deadline import Deadline
from runner.host.events import Log
from runner.host.port import Host
from runner.loop.policy import Policy
from runner.loop.progress import Progress
from runner.loop.rounds import Rounds
from runner.loop.turn import Turns
from runner.loop.view import RunView
from runner.models import habits
from runner.models.habits import Habits
from runner.models.pool import Bench, Writer
from runner.models.runaway import Runaway, Watch
from runner.models.waiting import FirstEvent
from runner.run.assembly import Assembled
from runner.sandbox.box import Sandbox
from runner.sandbox.key import chat_of
from runner.small.choice import policy_of
from runner.small.earlier import unanswered
from runner.small.evidence import ConsoleEvidence
from runner.small.part import EVERY_PART, Part
from runner.small.part import Parts as SmallParts
from runner.tools.execute import Executor, ToolSlots, open_gate
from runner.tools.jobs import Jobs
from runner.tools.memory import ToolMemory
from runner.tools.results import Renderer, TokenBound

WINDOW_KEY = "model_context_window_tokens"
"""Where a Host reports the primary model's window; 4.11.2 always reports none."""

_SKILL_SHARE = 0.25
"""Of the input budget, what the text of one skill may take (D4)."""

_SUMMARY_SHARE = 1 / 3
"""Of the time left, what summaries may take."""

_SUMMARY_SECONDS = 45.0
"""How long somebody may wait for the summaries of one compaction (L6)."""

_SEARCH_SHARE = 0.5
"""Of the time left, what the search for a follow-up may take."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run has before anything is asked of the Host."""

    ctx: RunnerContext
    host: Host
    settings: Settings
    tool_slots: ToolSlots
    outbox: Outbox
    visible: Visible
    progress: Progress
    delivery: Delivery
    sandbox: Sandbox
    deadline: Deadline
    say: Callable[..., str]
    save_marks: SaveMarks
    small_parts: SmallParts = EVERY_PART
    consent: Desk | None = None

    def warn(self, text: str) -> None:
        """A line for the bot's owner."""
        self.outbox.post(Log(text, "warning"))


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run works with once it is assembled."""

    context: Context
    view: RunView
    turns: Turns
    rounds: Rounds
    steering: Steering
    memory: ToolMemory
    policy: Policy
    jobs: Jobs


async def make_parts(around: Surroundings, start: Assembled, bench: Bench) -> Parts:
    """Build everything for the loop."""
    context = _context(around, start, bench)
    notes = start.checkpoint.notes if start.checkpoint else {}
    bench.habits = Habits(notes.get(habits.KEY), partial(context.note, habits.KEY))
    bench.ids.take(_ids_in(start.view))
    view = RunView(start.view, context, partial(_budget, around, start.checkpoint))
    policy = _policy(around, start, context)
    view.ask(start.question)
    policy.asked(start.question.text())
    policy.recall(unanswered(start.view.units))
    turns = Turns(
        bench,
        view,
        around.visible,
        around.outbox.show,
        around.progress,
        around.say,
        around.warn,
        around.delivery.may_be_silent,
        policy,
        bench.refusals,
        FirstEvent(bench.lineup, around.deadline, lambda: bench.habits, thinking_hidden=around.settings.remove_think),
    )
    jobs = Jobs()
    skills = TokenBound(partial(view.share, _SKILL_SHARE), context.price)
    rounds = _rounds(around, start, jobs, bench.ids, skills)
    around.sandbox.on_lost = lambda: view.withdraw(rounds.withdraw_sandbox())
    own = around.ctx.event.event_id if around.ctx.delivery.automatic_reply else None
    steering = Steering(around.host, start.speakers, own, around.ctx.run_id, _search(around, start))
    if around.consent is not None:
        steering.hear, around.consent.more_said = around.consent.hear, steering.more_said
    return Parts(context, view, turns, rounds, steering, start.memory, policy, jobs)


def _search(around: Surroundings, start: Assembled) -> Search | None:
    """How follow-ups are looked up in the knowledge bases; what is skipped is told once (E1)."""
    settings = around.settings.knowledge
    if not settings.bases or around.delivery.answering is Answering.NOBODY:
        return None
    told = set(start.notes)

    async def search(said: str, seconds: float) -> Reference | None:
        left, notes = around.deadline.share(clock.now(), _SEARCH_SHARE), list[str]()
        within = seconds if left is None else min(seconds, left)
        found = await retrieve(around.host, settings, around.ctx.resources, said, notes, within=within)
        for note in dict.fromkeys(notes):
            if note not in told:
                told.add(note)
                around.warn(note)
        return found

    return search


def _policy(around: Surroundings, start: Assembled, context: Context) -> Policy:
    """How this run speaks with its models; what is learned of them is kept with the conversation."""
    notes = start.checkpoint.notes if start.checkpoint else {}
    policy = policy_of(
        around.ctx,
        around.settings,
        start.catalogue,
        notes,
        context.note,
        around.say,
        around.warn,
        around.small_parts,
        sends_by=sent_by(start.catalogue, around.delivery.answering),
    )
    context.shape, context.smaller = policy.shape, policy.smaller
    return policy


def _context(around: Surroundings, start: Assembled, bench: Bench) -> Context:
    apis, limits = around.ctx.context.available_apis, around.settings.context
    chat = chat_of(around.ctx)
    name = f"{chat.bot} {chat.own}"
    writers = bench.writers() if around.save_marks.may_ask(name) else ()
    context = Context(
        meter=Meter(bench.count),
        ruler=Ruler(SharedTokenizer()),
        wishes=Wishes(limits.keep_recent_tokens, limits.summary_tokens),
        summarisers=[_summariser(write, around.deadline) for write in writers],
        now=time.time,
        log=lambda line: around.outbox.post(Log(line)),
        checkpoint=start.checkpoint,
        outdated=start.past.outdated,
        durable=apis.state and apis.history_page,
        unread=start.past.unread,
        empty=start.past.empty,
        patience=partial(_patience, around.deadline),
    )
    context.heard_of_saving = lambda saved: around.save_marks.heard(name, saved=saved)
    return context


def _patience(deadline: Deadline) -> float:
    """Seconds that somebody may wait for summaries from now on (L6)."""
    left = deadline.share(clock.now(), _SUMMARY_SHARE)
    return _SUMMARY_SECONDS if left is None else min(_SUMMARY_SECONDS, left)


def _summariser(write: Writer, deadline: Deadline) -> Summarise:
    """A model as the context wants one for summaries (F5).

    It gets a third of the time that is left, and is left itself once it repeats itself or grows longer than what it is
    made from.
    """

    async def summarise(request: Request) -> SummaryReply:
        watch = Watch(most=sum(len(turn.text()) for turn in request.units if isinstance(turn, UserTurn)))
        reply = await write(request, watch.feed, deadline.share(clock.now(), _SUMMARY_SHARE))
        endless = watch.runaway in (Runaway.CHANT, Runaway.LENGTH)
        ended = "length" if reply.cut else "content_filter" if reply.filtered else None
        return SummaryReply(reply.text, bool(reply.calls), ended, endless)

    return summarise


def _budget(around: Surroundings, checkpoint: Checkpoint | None, model_id: str) -> Budget:
    limits = around.settings.context
    reported = around.ctx.runtime.metadata.get(WINDOW_KEY)
    learned = checkpoint.windows.get(model_id) if checkpoint else None
    return Budget.of(limits.window_tokens, limits.reserve_tokens, reported=reported, learned=learned)


def _ids_in(view: View) -> Iterator[str]:
    """The ids of the calls that stand in the history already."""
    for unit in (*view.opening, *view.before, *view.units):
        if isinstance(unit, AssistantTurn):
            yield from (call.id for call in unit.calls)


def _rounds(around: Surroundings, start: Assembled, jobs: Jobs, ids: CallIds, skills: TokenBound) -> Rounds:
    settings, parts = around.settings, around.small_parts
    executor = Executor(
        around.delivery.listening(around.sandbox.call_tool),
        Renderer(settings.tools.max_result_chars, skills),
        around.tool_slots,
        around.outbox.post,
        serial=settings.tools.mode is ToolMode.SERIAL,
        jobs=jobs if Part.JOBS in parts else None,
        gate=around.consent.gate if around.consent is not None else open_gate,
    )
    evidence = ConsoleEvidence() if Part.EVIDENCE in parts else None
    return Rounds(start.catalogue, executor, around.progress, around.say, ids, start.memory, evidence, around.consent)
