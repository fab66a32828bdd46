"""Everyday tools whose answers nobody can guess."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Desk(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
