"""Tools for tests, served by the real LangBot."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Toolbox(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
