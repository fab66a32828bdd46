"""Which sandbox a chat reuses: the binding's template as a key (H1). Pure.

Keys live in one namespace for all bots, pipelines and plugins of a LangBot workspace, so the key must never come out
the same for two chats that the template tells apart. Values are therefore not glued together but hashed as a list: no
name that somebody chose can imitate another chat's key.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_GLOBAL: Final = "global"
_LEGIBLE: Final = 120
"""Characters of the key that are for people who read logs; the rest of it is the hash."""


@dataclass(frozen=True, slots=True)
class Chat:
    """What a template can name. `own` is what belongs to nobody else: the conversation, or the run where none is known.

    `names` holds the public variables and the Host's own words for the chat; empty values are left out.
    """

    names: Mapping[str, str]
    bot: str | None
    own: str


def chat_of(ctx: RunnerContext) -> Chat:
    """The names of a run: variables, then subject, then reply target; run and bot id can be overridden by none."""
    subject = ctx.subject.data if ctx.subject else {}
    target = ctx.delivery.reply_target or {}
    conversation = ctx.conversation
    conversation_id = ctx.context.conversation_id or (conversation.conversation_id if conversation else None)
    bot = (conversation.bot_id if conversation else None) or ctx.runtime.metadata.get("bot_id")
    bot_id = _word(bot) or _word(subject.get("bot_uuid"))
    sources: list[tuple[str, object]] = [
        ("conversation_id", conversation_id),
        ("sender_id", ctx.actor.actor_id if ctx.actor else None),
        ("launcher_type", target.get("target_type")),
        ("launcher_id", target.get("target_id")),
        *((name, subject.get(name)) for name in ("launcher_type", "launcher_id", "sender_id")),
        *((name, value) for name, value in ctx.variables.items() if not name.startswith("_")),
        ("run_id", ctx.run_id),
        ("bot_id", bot_id),
    ]
    names = {name: word for name, value in sources if (word := _word(value))}
    return Chat(names, bot_id or None, f"conversation {conversation_id}" if conversation_id else f"run {ctx.run_id}")


def reuse_key(template: str, chat: Chat) -> str:
    """The key for a template: 1 to 1,024 characters, the same for the same chat.

    The bot is part of it unless the template says `{global}`. A name that is unknown or empty stands for the
    conversation (or the run): at worst two chats that could share a sandbox do not.
    """
    wanted = _PLACEHOLDER.findall(template)
    shared = _GLOBAL in wanted
    if shared and _PLACEHOLDER.sub("", template).strip() == "" and set(wanted) == {_GLOBAL}:
        return _GLOBAL
    # What stands in for a missing name is marked as such: nobody can take it as a name.
    known = [(name, _GLOBAL if name == _GLOBAL else chat.names.get(name)) for name in wanted]
    bot = _GLOBAL if shared else chat.bot
    exact = json.dumps([bot, template, known, None if bot and all(value for _, value in known) else chat.own])
    filled = iter(value or chat.own for _, value in known)
    legible = _PLACEHOLDER.sub(lambda _: next(filled), template)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{bot or chat.own}_{legible}")[:_LEGIBLE]
    return f"{plain}_{hashlib.sha256(exact.encode()).hexdigest()[:32]}"


def _word(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""
