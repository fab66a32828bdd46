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
            said = context.event
            if not isinstance(said, PersonNormalMessageReceived) or said.text_message != WORDS:
                return
            assert isinstance(context, EventContextProxy)  # what the SDK passes, whatever it says
            await context.create_new_conversation()
