"""Which policy a run has, by its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.choices import CallFormat, ModelProfile
from config.settings import Settings
from runner.host.events import Json
from runner.loop.policy import Policy, Standard
from runner.small.guiding import PSEUDO_TOOLS, Guiding
from runner.small.hints import KEY as HINTS_KEY
from runner.small.hints import Hints
from runner.small.memory import KEY, Memory
from runner.small.part import Part, Parts
from runner.small.shown import KEY as SHOWN_KEY
from runner.small.shown import Places
from runner.tools.catalogue import Catalogue
from runner.tools.jobs import JOB_OUTPUT


def is_standard(settings: Settings) -> bool:
    """Whether nothing of S2, S3, S5 and S8 may happen in this run."""
    return settings.small.profile is ModelProfile.STANDARD and settings.small.call_format is CallFormat.NATIVE


def ranks(settings: Settings, tools: int) -> bool:
    """Whether some of so many tools may have to be chosen for a step (S2)."""
    return settings.small.profile is not ModelProfile.STANDARD and tools > settings.small.max_tools_shown


def reserved_names(settings: Settings) -> tuple[str, ...]:
    """Names that tools of the Host may not have, since the loop's own tools have them."""
    return (JOB_OUTPUT,) if is_standard(settings) else PSEUDO_TOOLS


def most_rounds(settings: Settings, parts: Parts) -> int:
    """Rounds of tools in a run: `max-steps` counts instead where the model is small for sure (S3).

    One more than those, since the answer itself may be a call (J2).
    """
    if settings.small.profile is ModelProfile.SMALL and Part.MAX_STEPS in parts:
        return settings.small.max_steps + 1
    return settings.tools.max_rounds


def policy_of(
    ctx: RunnerContext,
    settings: Settings,
    catalogue: Catalogue,
    notes: Mapping[str, Json],
    note: Callable[[str, Json], None],
    say: Callable[..., str],
    warn: Callable[[str], None],
    parts: Parts,
    *,
    sends_by: str | None,
) -> Policy:
    """The policy of a run. `notes` are those of the conversation's checkpoint, `note` adds one.

    `sends_by`: the tool by which the model has to send its answer itself (J2).
    """
    if is_standard(settings):
        return Standard()
    memory = Memory(notes.get(KEY), lambda value: note(KEY, value))
    hints = Hints(notes.get(HINTS_KEY), lambda value: note(HINTS_KEY, value))
    places = Places(notes.get(SHOWN_KEY), lambda value: note(SHOWN_KEY, value))
    return Guiding(
        settings.small,
        memory,
        catalogue,
        say,
        warn,
        place_of(ctx),
        parts,
        hints=hints,
        places=places,
        sends_by=sends_by,
    )


def place_of(ctx: RunnerContext) -> tuple[str, ...]:
    """Where the chat is, as others named it: the platform's adapter and the group (S3)."""
    adapter = (ctx.delivery.platform_capabilities or {}).get("adapter")
    group = ctx.variables.get("group_name")
    return tuple(str(name) for name in (adapter, group) if name)
