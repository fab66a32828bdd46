"""The debug chat of LangBot's web page: one websocket, one conversation.

LangBot sends what happens in one pipeline's person chats to every connection of that pipeline, so conversations that
run side by side need a pipeline each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from demo.api import LangBotApi
from demo.errors import DemoError
from weights.errors import one_line

# How long a Host that took the message may stay idle without showing anything before the turn counts as unanswered.
SILENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of the websocket: `card` is the chat message it belongs to, `at` the time.monotonic() of reading.

    `files` are the names of the files that came with it.
    """

    kind: str
    card: int
    text: str
    final: bool
    at: float
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and what the page showed for it, frame by frame."""

    question: str
    sent_at: float
    frames: tuple[Frame, ...]

    @property
    def cards(self) -> tuple[int, ...]:
        """The answer's messages on the page, in order of appearance."""
        return tuple(dict.fromkeys(frame.card for frame in self.frames))

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that came with the answer, each once."""
        return tuple(dict.fromkeys(name for frame in self.frames for name in frame.files))

    @property
    def answer(self) -> str:
        """The last state of every card, joined by a blank line; '' when nothing was shown."""
        last = {frame.card: frame.text for frame in self.frames}
        return "\n\n".join(last.values())


class Chat:
    """`async with Chat(api, pipeline) as chat: turn = await chat.ask("…")`.

    Raises DemoError when LangBot refuses the connection or a turn does not end in time.
    """

    def __init__(self, api: LangBotApi, pipeline: str, session_type: str = "person") -> None:
        self._api = api
        self._pipeline = pipeline
        self._session_type = session_type
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.frames: list[Frame] = []
        self.connection_id = ""

    @property
    def conversation_id(self) -> str:
        """LangBot's id of a person conversation over this connection."""
        return f"person_websocket_{self.connection_id}"

    async def __aenter__(self) -> Chat:
        session = self._api.session
        url = (
            f"{session.base_url.replace('http', 'ws', 1)}/api/v1/pipelines/{self._pipeline}/ws/connect"
            f"?session_type={self._session_type}"
        )
        hello = {"type": "authenticate", "token": session.token, "workspace_uuid": session.workspace}
        try:
            # LangBot answers 400 to a connection without an Origin.
            self._socket = await connect(
                url, additional_headers={"Origin": session.base_url}, proxy=None, max_size=None
            )
            await self._socket.send(json.dumps(hello))
            first = json.loads(await asyncio.wait_for(self._socket.recv(), 15))
        except (OSError, WebSocketException, TimeoutError) as error:
            raise DemoError(f"LangBot's chat refused the connection: {one_line(str(error))}") from error
        if first.get("type") != "connected":
            await self._socket.close()
            raise DemoError(f"LangBot's chat refused the connection: {one_line(str(first))}")
        self.connection_id = str(first["connection_id"])
        self._reader = asyncio.create_task(self._read(self._socket))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._socket is not None:
            await self._socket.close()

    async def send(self, text: str, stream: bool = True, files: Sequence[Mapping[str, str]] = ()) -> float:
        """Send one message; the time.monotonic() of it. Sent during a run, it may join that run (steering).

        `files` are components of LangBot's message chain: `{"type": "File", "name": …, "base64": "data:…"}`.
        """
        if self._socket is None:
            raise DemoError("the chat is not connected")
        message = {"type": "message", "stream": stream, "message": [{"type": "Plain", "text": text}, *files]}
        sent_at = time.monotonic()
        await self._socket.send(json.dumps(message))
        return sent_at

    async def ask(
        self, text: str, seconds: float = 300, stream: bool = True, files: Sequence[Mapping[str, str]] = ()
    ) -> Turn:
        """Send one message and wait until LangBot has finished with it."""
        start = len(self.frames)
        sent_at = await self.send(text, stream, files)
        await self.settled(start, seconds)
        return self.turn(text, sent_at, start)

    def turn(self, text: str, sent_at: float, start: int) -> Turn:
        """What the page showed since frame number `start`."""
        shown = tuple(frame for frame in self.frames[start:] if frame.kind == "response")
        return Turn(question=text, sent_at=sent_at, frames=shown)

    async def shows(self, text: str, seconds: float = 60) -> Frame:
        """The first frame that holds `text`, waiting for it."""
        end = time.monotonic() + seconds
        while True:
            for frame in self.frames:
                if frame.kind == "response" and text in frame.text:
                    return frame
            await self._next_frame(end, f"show {text!r}")

    async def settled(self, start: int, seconds: float) -> None:
        """Wait until the Host is idle after showing something since frame `start`, or has shown nothing for a while."""
        end = time.monotonic() + seconds
        quiet_since: float | None = None
        while True:
            if time.monotonic() > end:
                raise DemoError(f"LangBot did not finish the message within {seconds:.0f} s")
            await asyncio.sleep(0.05)
            if not await asyncio.to_thread(self._api.idle):
                quiet_since = None
                continue
            quiet_since = quiet_since or time.monotonic()
            fresh = self.frames[start:]
            if any(frame.kind == "response" for frame in fresh):
                if time.monotonic() - fresh[-1].at > 0.15:
                    return
            elif time.monotonic() - quiet_since > SILENCE_SECONDS:
                return

    async def _next_frame(self, end: float, what: str) -> None:
        self._news.clear()
        try:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                await self._news.wait()
        except TimeoutError:
            raise DemoError(f"LangBot's chat did not {what} in time") from None

    async def _read(self, socket: ClientConnection) -> None:
        with contextlib.suppress(WebSocketException):
            async for raw in socket:
                self.frames.append(_frame(json.loads(raw)))
                self._news.set()


def _frame(message: dict[str, Any]) -> Frame:
    data = message.get("data") or {}
    return Frame(
        kind=str(message.get("type")),
        card=int(data.get("id") or 0),
        text=str(data.get("content") or message.get("message") or ""),
        final=bool(data.get("is_final")),
        at=time.monotonic(),
        files=tuple(str(part.get("name")) for part in data.get("message_chain") or [] if part.get("type") == "File"),
    )
