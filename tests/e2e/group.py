"""A group on the tests' platform, and a bot in it that is bound to a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.onebot import TOKEN, Json, OneBot, segment
from tests.e2e.toolbox import request

_GROUPS = count(901)
"""Groups of their own for all who share one LangBot; other tests let things happen in 900."""


class GroupChat(OneBot):
    """A platform with one group, `group` by its number."""

    def __init__(self) -> None:
        super().__init__()
        self.group = next(_GROUPS)

    @property
    def conversation(self) -> str:
        """LangBot's id of the group's conversation."""
        return f"group_{self.group}"

    def says(self, text: str, user: int, nickname: str, parts: Sequence[Json] = ()) -> None:
        """A member writes into the group. `parts` stand before the text."""
        self._say(
            {
                "post_type": "message",
                "message_type": "group",
                "sub_type": "normal",
                "message_id": next(self._numbers),
                "group_id": self.group,
                "user_id": user,
                "message": [*parts, segment("text", text=text)],
                "raw_message": text,
                "font": 0,
                "sender": {"user_id": user, "nickname": nickname, "card": "", "role": "member", "title": ""},
            }
        )


@contextmanager
def group_bot(bed: Bed, pipeline: str, platform: OneBot) -> Iterator[None]:
    """A bot on the platform whose messages go to a pipeline; connected when this begins."""
    config = {"connection_mode": "forward_ws", "ws_url": platform.url, "access-token": TOKEN}
    body = {
        "name": "group bot",
        "description": "",
        "adapter": "onebot-v11",
        "adapter_config": config,
        "enable": True,
        "event_bindings": [{"event_pattern": "message.received", "target_type": "pipeline", "target_uuid": pipeline}],
    }
    bot = str(request(bed, "POST", "/platform/bots", json=body)["uuid"])
    request(bed, "PUT", f"/platform/bots/{bot}", json={"enable": True})
    try:
        wait_until("the bot's connection", lambda: platform.connected, seconds=30)
        yield
    finally:
        request(bed, "DELETE", f"/platform/bots/{bot}")
