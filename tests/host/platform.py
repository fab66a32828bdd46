"""The chat platform: its tools, granted in agent and event mode only, and its cards with buttons."""

from __future__ import annotations

import fnmatch
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pydantic
from langbot_plugin.api.entities.builtin.runner.interaction import InteractionRequest

from .script import Json
from .tools import Tool

# Tools of the chat platform, granted in agent and event mode only: langbot/pkg/agent/runner/platform_tools.py.

_ID: Json = {"type": "string"}
_TEXT: Json = {"type": "string", "minLength": 1}
_BOOL: Json = {"type": "boolean"}
_SECONDS: Json = {"type": "integer", "minimum": 0}
_CHAT: Json = {"type": "string", "enum": ["private", "group"]}
_TARGET: Json = {"type": "string", "enum": ["person", "group"]}

_MESSAGE_CHAT = {"chat_type": _CHAT, "chat_id": _ID, "message_id": _ID}
_MEMBER = {"group_id": _ID, "user_id": _ID}

# name → (properties, required, patterns of events that grant it)
_EVENT_TOOLS: dict[str, tuple[Json, list[str], tuple[str, ...]]] = {
    "event_reply": (
        {"text": _TEXT},
        ["text"],
        ("message.*", "friend.*", "group.*", "feedback.*", "interaction.submitted"),
    ),
    "event_delete_message": ({}, [], ("message.received", "message.edited")),
    "event_get_actor": ({}, [], ("*",)),
    "event_get_group": (
        {},
        [],
        ("message.*", "group.*", "bot.invited_to_group", "bot.removed_from_group", "bot.muted", "bot.unmuted"),
    ),
    "event_get_group_member": ({}, [], ("message.*", "group.*")),
    "event_mute_member": ({"duration": _SECONDS}, [], ("message.*", "group.member_*")),
    "event_unmute_member": ({}, [], ("message.*", "group.member_*")),
    "event_kick_member": ({}, [], ("message.*", "group.member_*")),
    "event_respond_friend_request": ({"approve": _BOOL, "remark": _ID}, ["approve"], ("friend.request_received",)),
    "event_respond_group_invite": ({"approve": _BOOL}, ["approve"], ("bot.invited_to_group",)),
}

_PLATFORM_TOOLS: dict[str, tuple[Json, list[str]]] = {
    "platform_send_message": (
        {"target_type": _TARGET, "target_id": _ID, "text": _TEXT},
        ["target_type", "target_id", "text"],
    ),
    "platform_get_message": (_MESSAGE_CHAT, list(_MESSAGE_CHAT)),
    "platform_delete_message": (_MESSAGE_CHAT, list(_MESSAGE_CHAT)),
    "platform_get_group_info": ({"group_id": _ID}, ["group_id"]),
    "platform_get_group_list": ({}, []),
    "platform_get_group_member_list": ({"group_id": _ID}, ["group_id"]),
    "platform_get_group_member_info": (_MEMBER, list(_MEMBER)),
    "platform_set_group_name": ({"group_id": _ID, "name": _TEXT}, ["group_id", "name"]),
    "platform_mute_member": ({**_MEMBER, "duration": _SECONDS}, list(_MEMBER)),
    "platform_unmute_member": (_MEMBER, list(_MEMBER)),
    "platform_kick_member": (_MEMBER, list(_MEMBER)),
    "platform_leave_group": ({"group_id": _ID}, ["group_id"]),
    "platform_get_user_info": ({"user_id": _ID}, ["user_id"]),
    "platform_get_friend_list": ({}, []),
}


@dataclass
class Platform:
    """What the runner did on the platform: `(tool, parameters)` in order, and the texts that were sent as replies."""

    actions: list[tuple[str, Json]] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def tools(self, event_type: str, allowed: list[str]) -> list[Tool]:
        """Those an event grants: its own tools by its type, and the allowed ones with explicit ids."""
        names = [name for name in allowed if name in _PLATFORM_TOOLS]
        made = [self._tool(name, *_PLATFORM_TOOLS[name]) for name in names]
        for name, (properties, required, patterns) in _EVENT_TOOLS.items():
            if any(fnmatch.fnmatch(event_type, pattern) for pattern in patterns):
                made.append(self._tool(name, properties, required))
        return made

    def _tool(self, name: str, properties: Json, required: list[str]) -> Tool:
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

        def act(given: Json) -> Any:
            self.check(name, properties, required, given)
            self.actions.append((name, given))
            if name == "event_reply":
                self.replies.append(str(given["text"]))
            return self.answers.get(name, {"ok": True, "mock": False, "action": name})

        return Tool(name, fn=act, type="platform", description=f"Platform: {name}", parameters=schema, takes_dict=True)

    @staticmethod
    def check(name: str, properties: Json, required: list[str], given: Json) -> None:
        """Strict, as platform_tools.py:_normalize_platform_params: no other keys, but `_call` where there are none."""
        extra = set(given) - set(properties) - (set() if properties else {"_call"})
        missing = [key for key in required if given.get(key) in (None, "")]
        if extra:
            raise ValueError(f"Unexpected platform tool parameters for {name}: {', '.join(sorted(extra))}")
        if missing:
            raise ValueError(f"Missing platform tool parameters for {name}: {', '.join(missing)}")


@dataclass
class ReplyStreams:
    """The explicit reply streams of one run (langbot/pkg/agent/runner/reply_stream.py)."""

    platform: Platform
    native: bool = True
    texts: dict[str, list[str]] = field(default_factory=dict)
    results: dict[str, Json] = field(default_factory=dict)

    def apply(self, data: Json) -> Json:
        """Raises ValueError beyond 16 streams, 200,000 characters, or for a stream that is closed."""
        key, operation, text = str(data["stream_id"]), str(data["operation"]), str(data["text"])
        if len(text) > 200_000:
            raise ValueError("String should have at most 200000 characters")
        if key not in self.texts and len(self.texts) >= 16:
            raise ValueError("A run may create at most 16 reply streams")
        texts = self.texts.setdefault(key, [])
        if self.results.get(key, {}).get("status") in ("completed", "cancelled"):
            raise ValueError("Reply stream is closed")
        if operation != "abort":
            texts.append(text)
        status = {"update": "open", "finish": "completed"}.get(operation, "cancelled")
        if operation == "finish" and text:
            self.platform.replies.append(text)
        delivery = "streaming" if self.native and any(texts) else "buffered"
        self.results[key] = {"stream_id": key, "status": status, "delivery": delivery, "mock": False}
        if operation == "finish":
            self.results[key]["text"] = text
        return self.results[key]


# Cards with buttons: langbot/pkg/agent/runner/interaction_manager.py, interaction_store.py; platform/botmgr.py.

CAPABILITIES: Json = {
    "field_types": ["select"],
    "action_styles": ["default", "primary", "danger"],
    "supports_updates": True,
    "max_fields": 1,
}
"""What Telegram's adapter says of itself (adapters/telegram/interaction.py)."""

PAYLOAD_BYTES = 256 * 1024
DEFAULT_SECONDS, MOST_SECONDS = 30 * 60, 24 * 60 * 60


class CardRefused(Exception):
    """The Host refuses the request, which fails the run, or the press, which starts none."""


@dataclass(eq=False)
class InteractionCard:
    """One card in the chat. `status`: pending, submitted, expired or delivery_failed."""

    run_id: str
    request: Json
    conversation: str | None
    actor: str | None
    expires_at: int
    status: str = "pending"

    @property
    def id(self) -> str:
        return str(self.request["interaction_id"])

    @property
    def actions(self) -> list[str]:
        return [str(action["id"]) for action in self.request["actions"]]


@dataclass(eq=False)
class Cards:
    """All cards of a world. `deliver` may raise what the platform's API raises."""

    all: list[InteractionCard] = field(default_factory=list)
    deliver: Callable[[InteractionCard], None] = lambda _card: None
    now: Callable[[], float] = time.time

    def request(self, payload: Any, run_id: str, conversation: str | None, actor: str | None) -> InteractionCard:
        """A card for `interaction.requested`. Raises CardRefused for what the Host refuses."""
        try:
            asked = InteractionRequest.model_validate(payload)
        except pydantic.ValidationError as error:
            raise CardRefused(f"invalid interaction request: {error}") from error
        now = int(self.now())
        expires_at = now + DEFAULT_SECONDS if asked.expires_at is None else asked.expires_at
        if not now < expires_at <= now + MOST_SECONDS:
            raise CardRefused("interaction request is already expired, or expires after 24 hours")
        request = {**asked.model_dump(mode="json"), "expires_at": expires_at}
        if len(json.dumps(request, ensure_ascii=False).encode()) > PAYLOAD_BYTES:
            raise CardRefused("interaction request exceeds 256 KiB")
        actions = [action.id for action in asked.actions]
        if len(actions) != len(set(actions)):
            raise CardRefused("interaction request has duplicate action IDs")
        if any(card.run_id == run_id and card.id == asked.interaction_id for card in self.all):
            raise CardRefused("Interaction already exists")
        card = InteractionCard(run_id, request, conversation, actor, expires_at)
        self.all.append(card)
        try:
            self.deliver(card)
        except Exception as error:
            card.status = "delivery_failed"
            raise CardRefused(str(error)) from error
        return card

    def press(self, card: InteractionCard, action: str, actor: str) -> Json:
        """The submission of a press, which the Host takes once. Raises CardRefused for any other press."""
        if action not in card.actions:
            raise CardRefused("interaction submission action is not present in the request")
        if card.status == "submitted":
            raise CardRefused("Interaction was already submitted")
        if card.status != "pending":
            raise CardRefused(f"Interaction is not pending: {card.status}")
        if card.expires_at <= self.now():
            card.status = "expired"
            raise CardRefused("Interaction has expired")
        if card.actor is not None and card.actor != actor:
            raise CardRefused("Interaction actor scope mismatch")
        card.status = "submitted"
        return {"interaction_id": card.id, "action_id": action, "values": {}, "submitted_at": int(self.now())}
