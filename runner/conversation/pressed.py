"""A button that somebody pressed: how the Host tells of it, and how the model reads it (M3). Pure."""

from __future__ import annotations

from typing import Final

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.interaction import INTERACTION_SUBMITTED_EVENT

from runner.conversation.units import Text, UserTurn

AGREES: Final = "agree"
REFUSES: Final = "refuse"
"""The ids of the two buttons of a request for consent."""


def is_press(ctx: RunnerContext, prefix: str) -> bool:
    """Whether this run was begun by a button of a request whose id begins so. The Host alone can say that."""
    press = ctx.input.interaction
    return (
        ctx.event.event_type == INTERACTION_SUBMITTED_EVENT
        and press is not None
        and press.interaction_id.startswith(prefix)
    )


def press_turn(ctx: RunnerContext) -> UserTurn:
    """The press as the turn that the run answers: no row of the transcript holds it."""
    press = ctx.input.interaction
    agreed = press is not None and press.action_id == AGREES
    return UserTurn((Text(f"[A button was pressed: the request was {'agreed to' if agreed else 'refused'}.]"),))
