"""Doors of the tests: a tool that knocks waits until the test opens, so a test decides how long the tool runs."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from demo.processes import wait_until

_PATIENCE = 110.0
"""Seconds after which a door that nobody opens says so: less than the tool's own limit."""


class Doors:
    """`with Doors() as doors: …`; a tool gets `doors.url("oak")`, the test waits for the knock and opens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, threading.Event] = {}
        self._log: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="doors", daemon=True)

    def __enter__(self) -> Doors:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for door in list(self._open):
            self.open(door)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, door: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{door}"

    @property
    def log(self) -> list[str]:
        """`knock oak` and `answer oak` as they happened."""
        with self._lock:
            return list(self._log)

    def open(self, door: str) -> None:
        """Let in who waits at the door, and who comes later."""
        self._event(door).set()

    async def knocked(self, door: str) -> None:
        """Return once somebody waits at the door."""
        await self._happens(f"knock {door}")

    async def answered(self, door: str) -> None:
        """Return once somebody was let in."""
        await self._happens(f"answer {door}")

    async def _happens(self, line: str) -> None:
        await asyncio.to_thread(wait_until, line, lambda: line in self.log, 60)

    def _event(self, door: str) -> threading.Event:
        with self._lock:
            return self._open.setdefault(door, threading.Event())

    def _arrived(self, door: str) -> str:
        event = self._event(door)
        self._note(f"knock {door}")
        opened = event.wait(_PATIENCE)
        self._note(f"answer {door}")
        return f"door {door} opened" if opened else f"door {door} stayed shut"

    def _note(self, line: str) -> None:
        with self._lock:
            self._log.append(line)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        arrived = self._arrived

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                said = arrived(self.path.strip("/")).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_arguments: object) -> None:
                """Nothing on the terminal."""

        return Handler
