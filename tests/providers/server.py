"""A provider over HTTP: it refuses what its dialect refuses, and says what a test wrote down."""

from __future__ import annotations

import asyncio

from aiohttp import web

from tests.e2e.served import Served
from tests.providers.dialect import Dialect, Refusal
from tests.providers.said import Answer, Fails, Heard, Json, Said, Scripted, Wire

ENDED = Said("END")
"""What is said when nothing is written down any more."""


class Provider(Served):
    """One provider, in a thread of its own: LiteLLM asks some servers in a way that holds the caller's event loop.

    `with Provider(Mistral()) as provider: provider.say(Said("Hello."))`. What is written down is used up by the
    requests that the provider takes; `otherwise` answers then. A request that breaks a rule is refused and uses
    nothing up.
    """

    def __init__(self, dialect: Dialect, *script: Scripted, otherwise: Scripted = ENDED) -> None:
        super().__init__()
        self.dialect = dialect
        self.otherwise = otherwise
        self.heard: list[Heard] = []
        self.refusals: list[Refusal] = []
        self._script = list(script)

    @property
    def base_url(self) -> str:
        """What LangBot's form holds as the address."""
        return f"http://127.0.0.1:{self.port}{self.dialect.base}"

    def say(self, *answers: Scripted) -> None:
        """Adds to what is written down."""
        self._script.extend(answers)

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.post("/{path:.*}", self.answer), web.get("/{path:.*}", self.models)]

    async def models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": []})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        if request.path.endswith("/api/show"):  # LiteLLM asks Ollama what a model can
            return web.json_response({"template": "", "model_info": {}, "capabilities": ["tools", "completion"]})
        heard = self.dialect.heard(request.path, body)
        self.heard.append(heard)
        refusal = self.dialect.refusal(heard)
        if refusal is not None:
            self.refusals.append(refusal)
            return self._error(refusal.status, refusal.words)
        return await self._say(request, heard, self._next(heard))

    def _next(self, heard: Heard) -> Answer:
        scripted = self._script.pop(0) if self._script else self.otherwise
        return scripted(heard) if callable(scripted) else scripted

    async def _say(self, request: web.Request, heard: Heard, answer: Answer) -> web.StreamResponse:
        match answer:
            case Fails(status, words):
                return self._error(status, words)
            case Said() if not heard.streamed:
                return web.json_response(self.dialect.whole(answer, heard))
            case Said():
                return await self._stream(request, list(self.dialect.events(answer, heard)))
            case Wire(events):
                return await self._stream(request, list(events))

    def _error(self, status: int, words: str) -> web.Response:
        return web.json_response(self.dialect.error(status, words), status=status)

    async def _stream(self, request: web.Request, events: list[Json]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": self.dialect.content_type})
        await response.prepare(request)
        for event in events:
            await response.write(self.dialect.line(event).encode())
            await asyncio.sleep(0)  # each event is a packet of its own, as over a real line
        await response.write(self.dialect.done.encode())
        await response.write_eof()
        return response
