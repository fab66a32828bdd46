"""Bots of the tests: LangBot Agents driven by their debug stream or bound to a bot, and a group with a bot in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import httpx

from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.onebot import TOKEN, Json, OneBot, segment
from tests.e2e.served import Callbacks
from tests.e2e.toolbox import request

# LangBot Agents of the tests: made through the API, driven by their debug stream, or bound to a bot.

# A JSON value on the wire.


@dataclass(frozen=True, slots=True)
class Debugged:
    """One debug run: the results as they came, and how the stream ended (`completed`, or `error` with a code)."""

    results: Sequence[Json]
    ending: Json

    @property
    def types(self) -> list[str]:
        return [str(result["type"]) for result in self.results]

    def of(self, kind: str) -> list[Json]:
        """The data of the results of a type."""
        return [result["data"] for result in self.results if result["type"] == kind]

    @property
    def deltas(self) -> list[str]:
        return [str(data["chunk"]["all_content"]) for data in self.of("message.delta")]

    @property
    def messages(self) -> list[str]:
        """Texts of the completed messages."""
        return [str(data["message"]["content"]) for data in self.of("message.completed")]


class Agents:
    """A client of the API for agents and bots. Raises httpx.HTTPStatusError when a call is refused."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        session = bed.langbot.api.session
        self._http = httpx.Client(
            base_url=f"{session.base_url}/api/v1",
            headers={"Authorization": f"Bearer {session.token}"},
            timeout=120,
            trust_env=False,
        )

    def make(self, *, platform_tools: Sequence[str] = (), **config: object) -> str:
        """A new agent with our runner: the form's defaults, the scripted model, `config` (keys with `_`) on top."""
        api, runner = self._bed.langbot.api, self._bed.runner_id
        bound = api.default_config(runner, self._bed.model("scripted"))
        bound |= {name.replace("_", "-"): value for name, value in config.items()}
        body = {
            "kind": "agent",
            "name": "tested agent",
            "supported_event_patterns": ["*"],
            "config": {
                "runner": {"id": runner},
                "runner_config": {runner: bound},
                "allowed_platform_tools": list(platform_tools),
            },
        }
        return str(self._call("POST", "/agents", body)["uuid"])

    def debug(self, agent: str, text: str, *, conversation: str = "", **payload: object) -> Debugged:
        """Run one event through the debug stream. `payload`: event_type, data, mock."""
        body: Json = {"text": text, "conversation_id": conversation or f"debug-{agent}", **payload}
        lines = []
        with self._http.stream("POST", f"/agents/{agent}/debug/stream", json=body) as answer:
            answer.raise_for_status()
            lines = [json.loads(line) for line in answer.iter_lines() if line.strip()]
        return Debugged([line["data"] for line in lines if line["kind"] == "result"], lines[-1])

    def bot(self, agent: str, platform: OneBot) -> str:
        """A new bot on the tests' platform, with every event bound to the agent; connected when this returns."""
        bot = self._bot(
            agent, "onebot-v11", {"connection_mode": "forward_ws", "ws_url": platform.url, "access-token": TOKEN}
        )
        wait_until("the bot's connection", lambda: platform.connected, seconds=30)
        return bot

    def web_bot(self, agent: str, callbacks: Callbacks) -> str:
        """A new bot that is written to over HTTP and streams its replies to `callbacks`."""
        config = {"inbound_secret": "s", "callback_url": callbacks.url, "signature_required": False}
        return self._bot(agent, "http_bot", config)

    def write(self, bot: str, text: str, session: str) -> None:
        """Send a message to a web bot."""
        body = {"session_id": session, "message": [{"type": "Plain", "text": text}]}
        url = f"{self._bed.langbot.api.session.base_url}/bots/{bot}"
        httpx.post(url, json=body, timeout=30, trust_env=False).raise_for_status()

    def _bot(self, agent: str, adapter: str, config: Json) -> str:
        body = {
            "name": "tested bot",
            "description": "",
            "adapter": adapter,
            "adapter_config": config,
            "enable": True,
            "event_bindings": [{"event_pattern": "*", "target_type": "agent", "target_uuid": agent}],
        }
        bot = str(self._call("POST", "/platform/bots", body)["uuid"])
        self._call("PUT", f"/platform/bots/{bot}", {"enable": True})
        return bot

    def remove_bot(self, bot: str) -> None:
        self._call("DELETE", f"/platform/bots/{bot}", None)

    def _call(self, method: str, path: str, body: Mapping[str, object] | None) -> Json:
        answer = self._http.request(method, path, json=body)
        if answer.status_code != 200:
            raise httpx.HTTPStatusError(answer.text[:500], request=answer.request, response=answer)
        data: Json = answer.json().get("data") or {}
        return data


# A group on the tests' platform, and a bot in it that is bound to a pipeline.

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
