"""Stands between LangBot and a real model: passes everything on, and keeps what was asked and answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

from tests.e2e.served import ModelServed

_SECONDS = 600.0


@dataclass(slots=True)
class Exchange:
    """One chat request as it went to the model, and the text of the answer as it came back, tool calls left out."""

    body: dict[str, Any]
    answer: str = ""

    @property
    def guided(self) -> bool:
        """Whether a JSON schema went with the request."""
        return "response_format" in self.body

    @property
    def text(self) -> str:
        return json.dumps(self.body["messages"], ensure_ascii=False)


class Recorder(ModelServed):
    """`with Recorder("http://127.0.0.1:8080/v1") as recorder:`; LangBot asks `recorder.base_url`."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target
        self.exchanges: list[Exchange] = []

    async def models(self, request: web.Request) -> web.Response:
        async with ClientSession() as session, session.get(f"{self._target}/models") as answer:
            return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        exchange = Exchange(await request.json())
        self.exchanges.append(exchange)
        async with (
            ClientSession(timeout=ClientTimeout(total=_SECONDS)) as session,
            session.post(f"{self._target}/chat/completions", json=exchange.body) as answer,
        ):
            passed = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await passed.prepare(request)
            whole = b""
            async for chunk in answer.content.iter_any():
                whole += chunk
                await passed.write(chunk)
            exchange.answer = _text_of(whole)
            await passed.write_eof()
            return passed


def _text_of(answer: bytes) -> str:
    """The words of a streamed answer; of another one, all of it."""
    lines = answer.decode("utf-8", "replace").splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    if not events:
        return answer.decode("utf-8", "replace")
    choices = [choice for event in events for choice in event.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
