"""A tool that takes as long as the test wants: it waits for the answer of a door."""

from __future__ import annotations

from typing import Any

import httpx
from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session


class Knock(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            return (await client.get(str(params["url"]))).text
