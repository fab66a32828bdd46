"""The Host's answers to the plugin's calls: one method `on_<action>` for each.

`ActionRefused` stands for an `ActionResponse.error(text)` of the Host; any other exception for one its handler turns
into text. The wrapping is in `host_handler`.
"""

from __future__ import annotations

from .resource_actions import ResourceActions
from .run_actions import RunActions
from .run_record import RunRecord
from .script import Json
from .sessions import ActionRefused


class Actions(ResourceActions, RunActions):
    """All answers for the runs of one world."""

    async def answer(self, action: str, data: Json) -> Json:
        """The reply data of a unary action. Raises ActionRefused, or what the Host's own code would raise."""
        method = self.world.answers.get(action) or getattr(self, f"on_{action}", None)
        if method is None:
            raise ActionRefused(f"Action {action} is not part of the test host")
        answered: Json = await method(data)
        return answered

    # Box

    def _in_box(self, data: Json) -> RunRecord:
        return self.session(data, "box")

    async def on_get_box_status(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.status()

    async def on_list_boxes(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.sessions()

    async def on_acquire_box(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.acquire(data)

    async def on_bind_box(self, data: Json) -> Json:
        return self.world.box.bind(self._in_box(data).run_id, data["box_id"])

    async def on_import_box_attachments(self, data: Json) -> Json:
        record = self._in_box(data)
        wanted = data.get("attachment_ids")
        return self.world.box.import_attachments(record.run_id, list(record.attachments), wanted)

    async def on_export_box_files(self, data: Json) -> Json:
        return self.world.box.export(self._in_box(data).run_id, data.get("paths"))

    # Replies in agent mode

    async def on_reply_stream(self, data: Json) -> Json:
        record = self.granted(data, "tools", "event_reply", "call")
        return {"result": record.reply_streams.apply(data)}

    async def on_call_platform_api(self, data: Json) -> Json:
        record = self.granted(data, "tools", data.get("context_tool") or data["action"], "call")
        if data.get("file_ids"):
            self.world.platform.files += self.world.box.take(record.run_id, data["file_ids"])
        parts = (data.get("params") or {}).get("message") or []
        text = "".join(str(part.get("text") or "") for part in parts if part.get("type") == "Plain")
        if text:
            self.world.platform.replies.append(text)
        return {"result": {"ok": True, "mock": False, "action": data["action"]}}
