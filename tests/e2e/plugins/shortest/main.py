"""A runner that ends as soon as the protocol lets it: the yardstick for the window across the end of a run."""

from langbot_plugin.api.definition.plugin import BasePlugin


class Shortest(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
