"""What somebody's words or press mean for an open request (M3). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.input import AgentInput

from config.choices import Agree
from runner.consent.request import PREFIX, ConsentRequest
from runner.consent.yes import is_yes
from runner.conversation.current import said_in
from runner.conversation.pressed import AGREES, is_press

_QUOTE: Final = ">"


class Verdict(StrEnum):
    """What comes of it."""

    NOTHING = "nothing"
    AGREED = "agreed"
    REFUSED = "refused"
    LAPSED = "lapsed"


@dataclass(frozen=True, slots=True)
class Heard:
    """One message or press. `agrees`: it is a yes and nothing else. `at`: epoch seconds, None: not known.

    `pressed`: the id of the request whose button it was; None for words.
    """

    actor: str | None
    name: str
    agrees: bool
    at: float | None = None
    pressed: str | None = None


def heard_in(said: AgentInput, actor: str | None, name: str, at: float | None = None) -> Heard:
    """A message. Only its own words count: with a file or a picture it is more than a yes."""
    own = "\n".join(line for line in said_in(said).splitlines() if not line.startswith(_QUOTE))
    bare = not said.attachments and all(part.type == "text" for part in said.contents)
    return Heard(actor, name, bare and is_yes(own), at)


def heard_of(ctx: RunnerContext) -> Heard:
    """What began this run."""
    actor = ctx.actor.actor_id if ctx.actor else None
    name = str(ctx.variables.get("sender_name") or (ctx.actor.actor_name if ctx.actor else None) or actor or "")
    if is_press(ctx, PREFIX) and ctx.input.interaction is not None:
        press = ctx.input.interaction
        return Heard(actor, name, press.action_id == AGREES, press.submitted_at, press.interaction_id)
    return heard_in(ctx.input, actor, name, ctx.event.event_time)


def verdict(request: ConsentRequest, heard: Heard, rule: Agree, now: float, shown_at: float = 0.0) -> Verdict:
    """What it means. `shown_at`: epoch seconds of when the request was shown; an earlier yes answers something else."""
    if heard.pressed is not None and heard.pressed != request.key:
        return Verdict.NOTHING
    if not request.may_agree(heard.actor, rule) or (heard.pressed is None and not request.words):
        return Verdict.NOTHING
    if now >= request.lapses_at:
        return Verdict.LAPSED
    if heard.at is not None and heard.at < int(shown_at):
        return Verdict.REFUSED
    return Verdict.AGREED if heard.agrees else Verdict.REFUSED
