"""Where a web bot of the tests streams its replies to: an HTTP endpoint that keeps what it is sent."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from tests.e2e.served import Served


@dataclass(frozen=True, slots=True)
class Shown:
    """One state of a reply: all of its text so far, and whether it is the last."""

    text: str
    is_final: bool
    stream: bool


class Callbacks(Served):
    """`with Callbacks() as callbacks: …`; `callbacks.shown` grows in the order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Shown] = []

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.post("/replies", self._took)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/replies"

    @property
    def finished(self) -> bool:
        return any(one.is_final for one in self.shown)

    async def _took(self, request: web.Request) -> web.Response:
        payload = await request.json()
        text = "".join(str(part.get("text", "")) for part in payload["message"])
        self.shown.append(Shown(text, bool(payload["is_final"]), bool(payload["stream"])))
        return web.Response()
