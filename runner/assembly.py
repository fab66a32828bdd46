"""Gathering what a run starts from: prompt and history, asked for at once (B1, B5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem

from config.settings import Settings
from runner.conversation.current import current_turn
from runner.conversation.history import Row, ToolMemoryForm, read_row, rows_before, units_of
from runner.conversation.prompt import Prompt, read_prompt, with_date
from runner.conversation.record import Record, RecordedCall
from runner.conversation.skills import skill_index
from runner.conversation.speakers import GROUP_LINE, Speakers
from runner.conversation.units import System, Unit, UserTurn
from runner.errors import HostCallFailed
from runner.host import PAGE_LIMIT, Host
from runner.memory import ToolMemory, unsaid_turns
from runner.tools.catalogue import Catalogue

ACTIVATE = "activate"
"""The Host's tool that loads a skill (host-contract §8.3)."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the run begins with. `notes` name what could not be had, for the log."""

    system: System
    units: tuple[Unit, ...]
    catalogue: Catalogue
    speakers: Speakers
    question: UserTurn
    memory: ToolMemory
    notes: tuple[str, ...]


async def assemble(ctx: RunnerContext, host: Host, settings: Settings) -> Assembled:
    """Ask for everything at once. Raises PromptMalformed; anything else that fails is done without and noted."""
    notes: list[str] = []
    catalogue = Catalogue.build(ctx.resources.tools, hide_sandbox=True)
    async with asyncio.TaskGroup() as group:
        prompt_task = group.create_task(_prompt_rows(ctx, host, settings, notes))
        history_task = group.create_task(_history(ctx, host, settings.context.history_limit, notes))
    prompt = read_prompt(prompt_task.result())
    speakers = speakers_of(ctx)
    question = current_turn(ctx.input, ctx.actor, speakers)
    rows = [row for item in history_task.result() if (row := read_row(item)) is not None]
    unsaid = unsaid_turns(ctx.state.conversation) if settings.tools.memory else ()
    units = (*prompt.opening, *_past(rows, speakers, _memory_form(settings, catalogue), unsaid))
    system = _system(prompt, settings, speakers, _skills(ctx, catalogue))
    memory = ToolMemory(unsaid, wanted=settings.tools.memory)
    return Assembled(system, units, catalogue, speakers, question, memory, (*catalogue.notes, *notes))


def _past(
    rows: Sequence[Row], speakers: Speakers, form: ToolMemoryForm, unsaid: Sequence[tuple[RecordedCall, ...]]
) -> tuple[Unit, ...]:
    """The history and, behind the message they answered, the calls of a run that ended without a word (D5)."""
    units = units_of(rows, speakers, form)
    if not units or not isinstance(units[-1], UserTurn):
        return units
    return (*units, *Record(tuple(unsaid)).as_units("unsaid"))


def _memory_form(settings: Settings, catalogue: Catalogue) -> ToolMemoryForm:
    if not settings.tools.memory:
        return ToolMemoryForm.NONE
    return ToolMemoryForm.TURNS if len(catalogue) else ToolMemoryForm.TEXT


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


def _system(prompt: Prompt, settings: Settings, speakers: Speakers, skills: str | None) -> System:
    """The owner's prompt and, at its end, the few lines the runner adds; nothing where nothing applies (S6)."""
    lines = [line for line in (skills, GROUP_LINE if speakers.group else None) if line]
    system = replace(prompt.system, added=(*prompt.system.added, *lines))
    return with_date(system, datetime.now(UTC)) if settings.date_grounding else system


def _skills(ctx: RunnerContext, catalogue: Catalogue) -> str | None:
    activate = next((entry.name for entry in catalogue if entry.host_name == ACTIVATE), None)
    return skill_index(ctx.resources.skills, activate)


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


async def _history(ctx: RunnerContext, host: Host, limit: int, notes: list[str]) -> list[TranscriptItem]:
    """Up to `limit` rows older than the current message, oldest first; fewer when a page fails."""
    if not ctx.context.available_apis.history_page:
        return []
    pulled: list[TranscriptItem] = []
    before: str | None = None
    wanted = limit + 1  # the current message is among the newest rows
    while len(pulled) < wanted:
        try:
            page = await host.history_page(before=before, limit=min(PAGE_LIMIT, wanted - len(pulled)))
        except HostCallFailed as failure:
            notes.append(f"a page of history could not be read ({failure}); going on with {len(pulled)} rows")
            break
        pulled.extend(page.items)
        before = page.next_cursor
        if not page.has_more or before is None or not page.items:
            break
    return rows_before(pulled, ctx.event.event_id)[-limit:]
