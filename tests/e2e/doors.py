"""Doors of the tests: a tool that knocks waits until the test opens, so a test decides how long the tool runs."""

from __future__ import annotations

import asyncio
from types import TracebackType

from aiohttp import web

from demo.processes import wait_until
from tests.e2e.served import Served

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
