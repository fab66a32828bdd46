"""Small HTTP servers of the tests, each in a thread with its own event loop: doors that a test opens, and where a web
bot streams its replies to."""

from __future__ import annotations

import asyncio
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from aiohttp import web

from demo.processes import wait_until

# A small HTTP server of the tests, in a thread with its own event loop.

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


# Doors of the tests: a tool that knocks waits until the test opens, so a test decides how long the tool runs.

_PATIENCE = 110.0
"""Seconds after which a door that nobody opens says so: less than the tool's own limit."""


class Doors(Served):
    """`with Doors() as doors: …`; a tool gets `doors.url("oak")`, the test waits for the knock and opens."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, asyncio.Event] = {}
        self._log: list[str] = []

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/{door}", self._arrived)]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for door in list(self._open):
            self.open(door)
        super().__exit__(kind, error, trace)

    def url(self, door: str) -> str:
        return f"http://127.0.0.1:{self.port}/{door}"

    @property
    def log(self) -> list[str]:
        """`knock oak` and `answer oak` as they happened."""
        return list(self._log)

    def open(self, door: str) -> None:
        """Let in who waits at the door, and who comes later."""
        self.do(self._let_in(door))

    async def knocked(self, door: str) -> None:
        """Return once somebody waits at the door."""
        await self._happens(f"knock {door}")

    async def answered(self, door: str) -> None:
        """Return once somebody was let in."""
        await self._happens(f"answer {door}")

    async def _happens(self, line: str) -> None:
        await asyncio.to_thread(wait_until, line, lambda: line in self.log, 60)

    def _event(self, door: str) -> asyncio.Event:
        return self._open.setdefault(door, asyncio.Event())

    async def _let_in(self, door: str) -> None:
        self._event(door).set()

    async def _arrived(self, request: web.Request) -> web.Response:
        door = request.match_info["door"]
        self._log.append(f"knock {door}")
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._event(door).wait()
        except TimeoutError:
            said = f"door {door} stayed shut"
        else:
            said = f"door {door} opened"
        self._log.append(f"answer {door}")
        return web.Response(text=said)


# Where a web bot of the tests streams its replies to: an HTTP endpoint that keeps what it is sent.


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
