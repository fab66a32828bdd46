"""What happened on the platform, told to the model in plain words, for events that are no message (J1)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from runner.conversation.attachments import NOWHERE, Place, attached, in_words
from runner.conversation.cut import clip, head, sendable
from runner.conversation.units import Text, UserTurn
from runner.guards import defang, frame

MESSAGE = "message.received"
"""The one event in which somebody wrote to the bot; its text is the question (J1)."""

DATA_CHARACTERS = 4_000
"""Most of an event's data that the model reads: the Host hands on short values only, a debug run anything."""

MOST_FILES = 20
"""Files of an event that are named one by one."""

_LINE_CHARACTERS = 500
_TYPE_CHARACTERS = 80

_PLAIN_WORDS: Mapping[str, str] = {
    "message.edited": "a message was edited",
    "message.deleted": "a message was deleted",
    "message.reaction": "somebody reacted to a message, or took a reaction back",
    "feedback.received": "somebody rated an answer of the bot",
    "group.member_joined": "a new member joined a group",
    "group.member_left": "a member left a group, or was removed from it",
    "group.member_banned": "a member was muted or banned in a group",
    "group.info_updated": "the description of a group was changed",
    "friend.request_received": "somebody asks to add the bot as a friend",
    "friend.added": "the bot has a new friend",
    "friend.removed": "somebody is no longer a friend of the bot",
    "bot.invited_to_group": "the bot was invited to a group",
    "bot.removed_from_group": "the bot was removed from a group",
    "bot.muted": "the bot was muted in a group",
    "bot.unmuted": "the bot may speak again in a group",
}

_NO_NEWS = frozenset({"type", "timestamp", "bot_uuid", "adapter_name", "instance_uuid", "workspace_uuid"})
"""Keys of the event's data that tell the model nothing it could use."""

_WHAT_TO_DO = (
    "Nobody wrote to you, and what you write is sent to nobody. Do what your instructions say about this event, with "
    "the tools; if they say nothing about it, do nothing. Then say in one sentence what was done, for the log."
)


def is_message(event_type: str) -> bool:
    """Whether an event is a message that somebody wrote to the bot."""
    return event_type == MESSAGE


def event_turn(ctx: RunnerContext, places: Mapping[str, Place] = NOWHERE) -> UserTurn:
    """The event as the turn that the run answers: what happened, its facts framed as data, and what is expected.

    `places` tells by reference which files of the event stand in the sandbox.
    """
    facts = "\n".join(sendable(line) for line in (*_facts(ctx), *_files(ctx, places), *_data(ctx)))
    block = frame(facts, "the chat platform, about this event")
    title = defang(f"[Event, not a message: {in_plain_words(ctx.event.event_type)}.]")
    return UserTurn((Text(f"{title}\n{block}\n{_WHAT_TO_DO}"),))


def in_plain_words(event_type: str) -> str:
    """A short sentence for a type of event; the type itself, made harmless, where none is known."""
    if event_type in _PLAIN_WORDS:
        return _PLAIN_WORDS[event_type]
    return f'something of the type "{_short(event_type, _TYPE_CHARACTERS)}" happened'


def _facts(ctx: RunnerContext) -> Iterator[str]:
    yield f"event: {_line(ctx.event.event_type)}"
    if (actor := ctx.actor) is not None and actor.actor_id:
        yield f"by or about: {_named(actor.actor_name, actor.actor_id)}"
    if (subject := ctx.subject) is not None and subject.subject_type != "event":
        yield f"{_line(subject.subject_type)}: {_named(subject.data.get('group_name'), subject.subject_id)}"
    target = ctx.delivery.reply_target or {}
    if target.get("target_type") and target.get("target_id"):
        yield f"chat: {_line(target['target_type'])} {_line(target['target_id'])}"
    summary = ctx.input.to_text()
    if summary and summary != ctx.event.event_type:
        yield f"in short: {_line(summary)}"


def _files(ctx: RunnerContext, places: Mapping[str, Place]) -> Iterator[str]:
    """The files of the event, pictures too: nothing else shows them."""
    for file in attached(ctx.input)[:MOST_FILES]:
        yield f"with {in_words(file, places.get(file.ref) if file.ref else None)}"


def _data(ctx: RunnerContext) -> Iterator[str]:
    data = {name: value for name, value in ctx.event.data.items() if name not in _NO_NEWS and value is not None}
    if not data:
        return
    try:
        told = json.dumps(data, ensure_ascii=False, default=str)
    except RecursionError:
        told = "(nested too deeply to be shown)"
    yield f"data: {clip(told, DATA_CHARACTERS).text}"


def _named(name: object, identifier: object) -> str:
    named = _line(name) if name else ""
    known_as = f"id {_line(identifier)}" if identifier else ""
    return f"{named} ({known_as})" if named and known_as else named or known_as or "unknown"


def _line(value: object) -> str:
    return head(" ".join(str(value).split()), _LINE_CHARACTERS)


def _short(value: str, limit: int) -> str:
    plain = sendable(" ".join(value.split())).replace('"', "'").replace("[", "(").replace("]", ")")
    return head(defang(plain), limit)
