"""A small HTTP server of the tests, in a thread with its own event loop."""

from __future__ import annotations

import asyncio
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

T = TypeVar("T")


class Served(ABC):
    """`with` starts the server on a free port of loopback (`port`) and takes it down again."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)
        self._runner: web.AppRunner | None = None
        self.port = 0

    @abstractmethod
    def routes(self) -> list[web.AbstractRouteDef]:
        """What the server answers."""

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self.do(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the server's loop and wait for it, at most 30 s."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def secured(self) -> ssl.SSLContext | None:
        """By which certificate it speaks TLS; without one it speaks plain HTTP."""
        return None

    async def _listen(self) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_routes(self.routes())
        # handler_cancellation: a client that leaves ends the reply, as with a real server.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.secured()).start()
        self.port = self._runner.addresses[0][1]


class ModelServed(Served):
    """A model behind the usual two addresses; LangBot asks `base_url`, which ends in /v1."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/v1/models", self.models), web.post("/v1/chat/completions", self.chat)]

    @abstractmethod
    async def models(self, request: web.Request) -> web.Response:
        """The list of models."""

    @abstractmethod
    async def chat(self, request: web.Request) -> web.StreamResponse:
        """A reply, streamed or whole."""
