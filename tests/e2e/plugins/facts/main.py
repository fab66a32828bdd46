"""A knowledge engine that finds facts by their words: the tests' own, served by the real LangBot."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Facts(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
