"""Cards with buttons: langbot/pkg/agent/runner/interaction_manager.py, interaction_store.py; platform/botmgr.py."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pydantic
from langbot_plugin.api.entities.builtin.runner.interaction import InteractionRequest

from .script import Json

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
