"""`start over` in the chat begins a new conversation, as plugins do it: rows are hidden, its state is deleted."""

from __future__ import annotations

from langbot_plugin.api.definition.components.common.event_listener import EventListener
from langbot_plugin.api.entities.context import EventContext
from langbot_plugin.api.entities.events import PersonNormalMessageReceived
from langbot_plugin.api.proxies.event_context import EventContextProxy

WORDS = "start over"


class StartOver(EventListener):
    async def initialize(self) -> None:
        @self.handler(PersonNormalMessageReceived)
        async def on_message(context: EventContext) -> None:
            # What comes is the proxy with the calls to LangBot; the decorator is annotated with its plain parent.
            assert isinstance(context, EventContextProxy)
            if getattr(context.event, "text_message", "") == WORDS:
                await context.create_new_conversation()
