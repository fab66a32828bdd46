"""Consent as a part of a run: who asks, what stands behind the answer, what the run's line tells (M)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from config.choices import Ask
from runner.consent.desk import Counts, Desk, Place
from runner.consent.need import Need
from runner.consent.request import PREFIX
from runner.consent.verdict import heard_of
from runner.conversation.happened import is_message
from runner.conversation.pressed import is_press
from runner.host.events import Answer, Event
from runner.run.assembly import speakers_of
from runner.run.setup import Surroundings


def desk_of(around: Surroundings) -> Desk | None:
    """Who asks before tools run; None where none asks. A press of an earlier request is heard all the same."""
    settings, ctx = around.settings.consent, around.ctx
    if settings.ask is Ask.NEVER and not is_press(ctx, PREFIX):
        return None

    def note(text: str) -> None:
        around.visible.note(text)
        around.outbox.show(around.visible.text)

    desk = Desk(around.host, Need.of(settings), _place(around), around.say, note, around.warn, epoch)
    desk.hear(heard_of(ctx))
    return desk


def epoch() -> float:
    """Now, in seconds as the Host counts them: a request outlives the worker."""
    return time.time()


def _place(around: Surroundings) -> Place:
    ctx = around.ctx
    speakers = speakers_of(ctx)
    actor = ctx.actor.actor_id if ctx.actor else None
    asks = ctx.context.available_apis.state and ctx.conversation is not None
    return Place(
        run_id=ctx.run_id,
        asker=actor,
        name=speakers.name_of(actor),
        group=speakers.group,
        asks=asks,
        words=around.delivery.speaks and (ctx.delivery.automatic_reply or is_message(ctx.event.event_type)),
        buttons=ctx.delivery.interactions is not None,
        rule=around.settings.consent.who,
        sandbox=around.sandbox.key,
        state=ctx.state.conversation,
    )


def is_dead_press(ctx: RunnerContext, desk: Desk) -> bool:
    """Whether somebody pressed a button of a request that does not wait any more."""
    press = ctx.input.interaction
    if not is_press(ctx, PREFIX) or press is None:
        return False
    return desk.open is None or desk.open.key != press.interaction_id


def with_request(last: tuple[Event, ...], text: str, desk: Desk) -> tuple[Event, ...]:
    """The last events with what makes a request count, behind the answer that shows all of it."""
    return tuple(_behind_answers(last, text, desk))


def _behind_answers(last: tuple[Event, ...], text: str, desk: Desk) -> Iterator[Event]:
    for event in last:
        yield event
        if isinstance(event, Answer) and event.text == text:
            yield from desk.last_events()


def told(counts: Counts) -> tuple[str, ...]:
    """For the run's line; nothing where nothing was asked."""
    words = (("asked for consent", counts.asked), ("agreed to", counts.agreed), ("not agreed to", counts.refused))
    return tuple(f"{count} {'call' if count == 1 else 'calls'} {what}" for what, count in words if count)
