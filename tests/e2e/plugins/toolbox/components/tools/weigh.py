"""A tool that answers at once, with a dict."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session

GRAMS = {"heron": 1731, "wren": 9}


class Weigh(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        bird = str(params["bird"])
        return {"bird": bird, "grams": GRAMS[bird], "ticket": f"ticket-{bird}-{GRAMS[bird]}"}
