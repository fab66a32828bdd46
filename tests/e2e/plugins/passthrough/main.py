"""A runner that hands messages to the first model and its words back: the yardstick beside which ours is measured."""

from langbot_plugin.api.definition.plugin import BasePlugin


class PassThrough(BasePlugin):
    async def initialize(self) -> None:
        """Nothing to prepare."""
