"""The tools as LangBot calls them: one class for each name, all answered by the desk."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.definition.plugin import BasePlugin
from langbot_plugin.api.entities.builtin.provider.session import Session

from .desk import Desk, here_and_now
from .notebook import Notebook

_ONE_AT_A_TIME: Final = asyncio.Lock()
"""Two notes that are made at once have to be read and stored one after the other."""


class _OfTheDesk(Tool):
    name: ClassVar[str]
    plugin: BasePlugin

    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        key = f"notes_{session.launcher_type.value}_{session.launcher_id}"

        async def load() -> bytes:
            if key not in await self.plugin.get_plugin_storage_keys():
                return b""
            stored: bytes = await self.plugin.get_plugin_storage(key)
            return stored

        async def save(notes: bytes) -> None:
            await self.plugin.set_plugin_storage(key, notes)

        async with _ONE_AT_A_TIME:
            return await Desk(here_and_now, Notebook(load, save)).call(self.name, params)


class CurrentTime(_OfTheDesk):
    name = "current_time"


class Calendar(_OfTheDesk):
    name = "calendar"


class Calculate(_OfTheDesk):
    name = "calculate"


class ConvertUnits(_OfTheDesk):
    name = "convert_units"


class AddNote(_OfTheDesk):
    name = "add_note"


class ListNotes(_OfTheDesk):
    name = "list_notes"


class SearchNotes(_OfTheDesk):
    name = "search_notes"
