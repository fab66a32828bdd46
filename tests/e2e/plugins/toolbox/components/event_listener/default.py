"""`poster 15000000` in a private chat becomes a picture of that many characters of base64: what no door of LangBot lets
in by itself, since each takes 10 MiB at most, and a plugin can."""

from __future__ import annotations

from langbot_plugin.api.definition.components.common.event_listener import EventListener
from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.context import EventContext
from langbot_plugin.api.entities.events import PersonNormalMessageReceived


class Poster(EventListener):
    async def initialize(self) -> None:
        @self.handler(PersonNormalMessageReceived)
        async def on_message(context: EventContext) -> None:
            said = context.event
            if not isinstance(said, PersonNormalMessageReceived):
                return
            word, _, size = said.text_message.partition(" ")
            if word == "poster" and size.isdecimal():
                picture = "data:image/png;base64," + "A" * int(size)
                said.user_message_alter = [
                    ContentElement.from_text("What is on it?"),
                    ContentElement.from_image_base64(picture),
                ]
