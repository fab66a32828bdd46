"""Gathering what a run starts from: prompt, history, knowledge and sandbox, all asked for at once (B1, B5, E1, H1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.settings import Settings
from runner.channel.answering import Answering, offered, system_line
from runner.consent.request import PREFIX
from runner.context import checkpoint as checkpoints
from runner.context.checkpoint import Checkpoint
from runner.context.compaction import View
from runner.context.coverage import leading
from runner.context.past import Past, read_past
from runner.conversation.attachments import Place
from runner.conversation.current import current_turn, said_in
from runner.conversation.happened import event_turn, is_message
from runner.conversation.history import ToolMemoryForm, names_in, units_of
from runner.conversation.pressed import is_press, press_turn
from runner.conversation.prompt import Prompt, read_prompt, with_date
from runner.conversation.record import Record, RecordedCall
from runner.conversation.retrieval import retrieve
from runner.conversation.skills import skill_index
from runner.conversation.speakers import GROUP_LINE, Speakers
from runner.conversation.units import Reference, System, Unit, UserTurn
from runner.host.errors import HostCallFailed
from runner.host.port import Host
from runner.sandbox.box import Sandbox
from runner.small.choice import ranks, reserved_names
from runner.tools.catalogue import ACTIVATE, Catalogue, Kind
from runner.tools.memory import ToolMemory, unsaid_turns
from runner.tools.ranking import know

REGISTER_SKILL = "register_skill"
"""The Host's tool that makes a skill, which can be activated in the same run."""

_FOLD_CHARACTERS_PER_TOKEN = 3
"""Older text is read to be folded up to about the input budget; most languages have at least so many a token."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the run begins with. `view` has no question yet; `notes` name what could not be had, for the log."""

    view: View
    question: UserTurn
    catalogue: Catalogue
    speakers: Speakers
    memory: ToolMemory
    checkpoint: Checkpoint | None
    past: Past
    notes: tuple[str, ...]


async def assemble(
    ctx: RunnerContext, host: Host, settings: Settings, sandbox: Sandbox, answering: Answering
) -> Assembled:
    """Ask for everything at once. Raises PromptMalformed; anything else that fails is done without and noted."""
    notes: list[str] = []
    checkpoint = _checkpoint(ctx)
    async with asyncio.TaskGroup() as group:
        prompt_task = group.create_task(_prompt_rows(ctx, host, settings, notes))
        past_task = group.create_task(_past(ctx, host, settings, checkpoint))
        knowledge_task = group.create_task(_knowledge(ctx, host, settings, answering, notes))
        sandbox_task = group.create_task(sandbox.open(ctx, notes))
    # Tools that no run has seen yet take a millisecond each (L12).
    granted = await asyncio.to_thread(_catalogue, ctx, settings, hide_sandbox=not sandbox.offered)
    catalogue = offered(granted, answering)
    prompt, past = read_prompt(prompt_task.result()), past_task.result()
    speakers = speakers_of(ctx).knowing(names_in((*past.older, *past.leaving, *past.recent)))
    unsaid = unsaid_turns(ctx.state.conversation) if settings.tools.memory else ()
    skills = _skills(ctx, catalogue)
    lines = tuple(filter(None, [skills, system_line(catalogue, answering)]))
    question = _question(ctx, speakers, answering, knowledge_task.result(), sandbox_task.result(), sandbox.line)
    # A long history takes tens of milliseconds to make harmless: not in the event loop (Q2).
    view = await asyncio.to_thread(_view, prompt, past, speakers, _Terms(settings, catalogue, lines, unsaid, skills))
    return Assembled(
        view=view,
        question=question,
        catalogue=catalogue,
        speakers=speakers,
        memory=ToolMemory(unsaid, wanted=settings.tools.memory),
        checkpoint=checkpoint,
        past=past,
        notes=(*catalogue.notes, *notes, *past.notes),
    )


def _question(
    ctx: RunnerContext,
    speakers: Speakers,
    answering: Answering,
    knowledge: Reference | None,
    places: Mapping[str, Place],
    aside: str,
) -> UserTurn:
    """What this run answers: a message, an event, or a button that was pressed."""
    if is_press(ctx, PREFIX):
        return press_turn(ctx)
    if answering is Answering.NOBODY:
        return event_turn(ctx, places)
    return current_turn(ctx.input, ctx.actor, speakers, knowledge=knowledge, places=places, aside=aside)


def _catalogue(ctx: RunnerContext, settings: Settings, *, hide_sandbox: bool) -> Catalogue:
    """The tools of the run. The Host grants the tools for skills always; where there is no skill, and none can be
    made, they are four hundred tokens that lead small models astray (S6)."""
    catalogue = Catalogue.build(ctx.resources.tools, hide_sandbox=hide_sandbox, reserved=reserved_names(settings))
    if ranks(settings, len(catalogue)):
        know(catalogue.specs)
    if ctx.resources.skills or catalogue.has_host_tool(REGISTER_SKILL):
        return catalogue
    return catalogue.only(lambda entry: entry.kind is not Kind.SKILL)


async def _knowledge(
    ctx: RunnerContext, host: Host, settings: Settings, answering: Answering, notes: list[str]
) -> Reference | None:
    """What the bases hold for the message; an event is no question (E1)."""
    if answering is Answering.NOBODY or is_press(ctx, PREFIX):
        return None
    return await retrieve(host, settings.knowledge, ctx.resources, said_in(ctx.input), notes)


def speakers_of(ctx: RunnerContext) -> Speakers:
    """Whether several people take part, and the names this run knows."""
    target = ctx.delivery.reply_target or {}
    subject = ctx.subject.data if ctx.subject else {}
    kinds = (ctx.variables.get("launcher_type"), subject.get("launcher_type"), target.get("target_type"))
    group = next((kind for kind in kinds if kind), None) == "group"
    actor = ctx.actor
    name = str(ctx.variables.get("sender_name") or (actor.actor_name if actor else None) or "")
    names = {actor.actor_id: name} if actor and actor.actor_id and name else {}
    return Speakers(group, names)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What shapes the view beside prompt and past. `lines` are added to the system, an index of `skills` among them."""

    settings: Settings
    catalogue: Catalogue
    lines: tuple[str, ...]
    unsaid: tuple[tuple[RecordedCall, ...], ...]
    skills: str | None

    @property
    def memory_form(self) -> ToolMemoryForm:
        if not self.settings.tools.memory:
            return ToolMemoryForm.NONE
        return ToolMemoryForm.TURNS if len(self.catalogue) else ToolMemoryForm.TEXT


def _view(prompt: Prompt, past: Past, speakers: Speakers, terms: _Terms) -> View:
    units = _with_unsaid(units_of((*past.leaving, *past.recent), speakers, terms.memory_form), terms.unsaid)
    return View(
        system=_system(prompt, speakers, terms),
        units=units,
        tools=terms.catalogue.specs,
        opening=prompt.opening,
        leaving=_leaving(units, past),
        before=units_of(past.older, speakers, terms.memory_form),
        before_span=past.older_span,
        about_tools=(terms.skills,) if terms.skills else (),
    )


def _leaving(units: tuple[Unit, ...], past: Past) -> int:
    """How many of the oldest units leave the fetch limit; none where the Host's cursors cannot be ordered."""
    try:
        return leading(units, past.leaving[-1].cursor) if past.leaving else 0
    except ValueError:
        return 0


def _with_unsaid(units: tuple[Unit, ...], unsaid: Sequence[tuple[RecordedCall, ...]]) -> tuple[Unit, ...]:
    """The history and, behind the message they answered, the calls of a run that ended without a word (D5)."""
    if not units or not isinstance(units[-1], UserTurn):
        return units
    return (*units, *Record(tuple(unsaid)).as_units("unsaid"))


def _system(prompt: Prompt, speakers: Speakers, terms: _Terms) -> System:
    """The owner's prompt and, at its end, the few lines the runner adds; nothing where nothing applies (S6)."""
    lines = (*terms.lines, *([GROUP_LINE] if speakers.group else []))
    system = replace(prompt.system, added=(*prompt.system.added, *lines))
    return with_date(system, datetime.now(UTC)) if terms.settings.date_grounding else system


def _skills(ctx: RunnerContext, catalogue: Catalogue) -> str | None:
    activate = next((one.name for one in catalogue if one.kind is Kind.SKILL and one.host_name == ACTIVATE), None)
    return skill_index(ctx.resources.skills, activate)


def _checkpoint(ctx: RunnerContext) -> Checkpoint | None:
    """From the snapshot in the context: no call. Without the history API there is nothing it could stand before."""
    if not ctx.context.available_apis.history_page:
        return None
    return checkpoints.read(ctx.state.conversation.get(checkpoints.KEY))


async def _prompt_rows(ctx: RunnerContext, host: Host, settings: Settings, notes: list[str]) -> list[object]:
    """The effective prompt where the Host offers one, else the form's (B1)."""
    if ctx.context.available_apis.prompt_get:
        try:
            rows: list[object] = list(await host.prompt())
        except HostCallFailed as failure:
            notes.append(f"the effective prompt could not be read ({failure}); the form's prompt is used")
        else:
            if rows:
                return rows
    return list(settings.prompt)


async def _past(ctx: RunnerContext, host: Host, settings: Settings, checkpoint: Checkpoint | None) -> Past:
    if not ctx.context.available_apis.history_page:
        return Past()
    return await read_past(
        host,
        ctx.event.event_id,
        checkpoint,
        limit=settings.context.history_limit,
        fold_characters=settings.context.input_budget() * _FOLD_CHARACTERS_PER_TOKEN,
        stored=is_message(ctx.event.event_type),
        stays=ctx.context.available_apis.state,
    )
