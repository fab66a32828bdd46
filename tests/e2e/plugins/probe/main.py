"""A runner that asks its Host what a test tells it to ask; the tests' own, for the real LangBot and the test host."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Probe(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
