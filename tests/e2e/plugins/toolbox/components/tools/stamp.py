"""A tool that gives back what it was given: a result that belongs to one conversation alone."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session


class Stamp(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        return {"stamped": str(params["text"])}
