"""Weather that nobody can guess."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session


class GetWeather(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        city = str(params["city"]).strip()
        degrees = 3 + sum(map(ord, city.lower())) % 30
        return f"{city}: {degrees} degrees, light wind from station W{degrees * 37 + 1000}."
