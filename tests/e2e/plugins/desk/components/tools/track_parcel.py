"""Parcels that are somewhere."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session


class TrackParcel(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        number = str(params["number"]).strip().upper()
        shelf = 400 + sum(map(ord, number)) % 500
        return f"Parcel {number} is at depot D{shelf} and arrives on Friday."
