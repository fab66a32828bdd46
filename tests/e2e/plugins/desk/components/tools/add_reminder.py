"""Reminders, confirmed with a number."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session


class AddReminder(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        text, minutes = str(params["text"]), int(params["minutes"])
        return f"Reminder R{7000 + minutes} is set: {text!r} in {minutes} minutes."
