"""A tool whose result is an object with a text that is no ASCII."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider import session as provider_session


class Called(Tool):
    async def call(  # type: ignore[override]  # the SDK says a text, and hands over whatever it gets
        self, params: dict[str, Any], session: provider_session.Session, query_id: int
    ) -> dict[str, Any]:
        return {"city": params["city"], "sky": "晴れ ☀️"}
