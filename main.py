"""The plugin as LangBot starts it. Its one component, the runner, is in components/runner."""

from langbot_plugin.api.definition.plugin import BasePlugin


class LocalAgent(BasePlugin):
    """Holds nothing: every setting belongs to the binding that a run brings along (A3)."""
