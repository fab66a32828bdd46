"""The plugin of the demo's tools. It does nothing by itself; each tool stands in components/tools."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Everyday(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
