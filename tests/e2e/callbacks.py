"""Where a web bot of the tests streams its replies to: an HTTP endpoint that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Shown:
    """One state of a reply: all of its text so far, and whether it is the last."""

    text: str
    is_final: bool
    stream: bool


class Callbacks:
    """`with Callbacks() as callbacks: …`; `callbacks.shown` grows in the order of arrival."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="callbacks", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/replies"

    def __enter__(self) -> Callbacks:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def finished(self) -> bool:
        return any(one.is_final for one in self.shown)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        shown = self.shown

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = "".join(str(part.get("text", "")) for part in payload["message"])
                shown.append(Shown(text, bool(payload["is_final"]), bool(payload["stream"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Nothing on the terminal."""

        return Handler
