"""A chat platform of the tests: an OneBot v11 endpoint that LangBot's own adapter connects to.

It says what happens on the platform, and keeps what the bot does there.
"""

from __future__ import annotations

import base64
import json
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from aiohttp import WSMsgType, web

from tests.e2e.scripted_model import Reply, Request, say
from tests.e2e.served import Served

# A JSON value on the wire.
Json = dict[str, Any]

BOT_ACCOUNT = 10001
TOKEN = "not-a-secret-token"


@dataclass(frozen=True, slots=True)
class Action:
    """Something the bot asked the platform to do."""

    name: str
    params: Json

    @property
    def text(self) -> str:
        """The text of a message it sends."""
        message = self.params.get("message", "")
        if isinstance(message, str):
            return message
        return "".join(str(part["data"].get("text", "")) for part in message if part["type"] == "text")

    @property
    def files(self) -> list[tuple[str, bytes]]:
        """Name and content of the files of a message it sends."""
        message = self.params.get("message", "")
        parts = [part["data"] for part in message if part["type"] == "file"] if isinstance(message, list) else []
        return [(str(part["name"]), b64decode(str(part["file"]).removeprefix("base64://"))) for part in parts]


def segment(kind: str, **data: object) -> Json:
    """A part of a message as OneBot writes it."""
    return {"type": kind, "data": data}


_ANSWERS: dict[str, Any] = {
    "get_group_info": {"group_id": 900, "group_name": "Chess club", "member_count": 3},
    "get_group_member_info": {"user_id": 0, "nickname": "", "title": ""},
    "send_msg": {"message_id": 1},
    "send_private_msg": {"message_id": 1},
    "send_group_msg": {"message_id": 1},
}

_LOOKING = ("get_",)


class OneBot(Served):
    """`with OneBot() as platform: …`; LangBot connects to `platform.url` with `TOKEN`."""

    def __init__(self) -> None:
        super().__init__()
        self._socket: web.WebSocketResponse | None = None
        self._numbers = count(1)
        self.asked: list[Action] = []
        self.refusing: set[str] = set()
        self.earlier: dict[int, Json] = {}
        """What `get_msg` answers for the number of a message: those that can be quoted."""

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/onebot"

    # -- for the test -----------------------------------------------------------
    @property
    def connected(self) -> bool:
        return self._socket is not None and not self._socket.closed

    @property
    def done(self) -> list[Action]:
        """What the bot did, without what it only looked up."""
        return [action for action in self.asked if not action.name.startswith(_LOOKING)]

    @property
    def said(self) -> list[str]:
        """Texts of the messages the bot sent, in order."""
        return [action.text for action in self.done if action.name.startswith("send_")]

    def forget(self) -> None:
        self.asked.clear()
        self.refusing.clear()

    def quotable(self, *parts: Json) -> Json:
        """The segment that quotes a message of these parts, which somebody wrote before."""
        number = next(self._numbers)
        said = {"message_id": number, "time": int(time.time()), "sender": {"user_id": 599, "nickname": "Eve"}}
        self.earlier[number] = {**said, "message": list(parts)}
        return segment("reply", id=str(number))

    def private(self, text: str, user: int = 501, nickname: str = "Ann", parts: Sequence[Json] = ()) -> None:
        """Somebody writes to the bot. `parts` stand before the text; without a text alone."""
        self._say(
            {
                "post_type": "message",
                "message_type": "private",
                "sub_type": "friend",
                "message_id": next(self._numbers),
                "user_id": user,
                "message": [*parts, *([segment("text", text=text)] if text else [])],
                "raw_message": text,
                "font": 0,
                "sender": {"user_id": user, "nickname": nickname},
            }
        )

    def joined(self, user: int) -> None:
        """Somebody joins a group."""
        self._say(
            {
                "post_type": "notice",
                "notice_type": "group_increase",
                "sub_type": "approve",
                "group_id": 900,
                "operator_id": 0,
                "user_id": user,
            }
        )

    def friend_request(self, user: int, comment: str, flag: str) -> None:
        """Somebody asks to be the bot's friend; `flag` is the platform's name for the request."""
        self._say({"post_type": "request", "request_type": "friend", "user_id": user, "comment": comment, "flag": flag})

    def wait(self, what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Return once `holds`. Raises TimeoutError that tells what the bot did instead."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} after {seconds:.0f} s; the bot did {self.done}")
            time.sleep(0.05)

    # -- the server -------------------------------------------------------------
    def _say(self, event: Json) -> None:
        self.do(self._send({"time": int(time.time()), "self_id": BOT_ACCOUNT, **event}))

    async def _send(self, frame: Json) -> None:
        assert self._socket is not None, "LangBot is not connected"
        await self._socket.send_str(json.dumps(frame))

    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.get("/onebot", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=403)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._socket = socket
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                await self._answer(socket, json.loads(frame.data))
        return socket

    async def _answer(self, socket: web.WebSocketResponse, call: Json) -> None:
        action = Action(str(call["action"]), dict(call.get("params") or {}))
        self.asked.append(action)
        data = _ANSWERS.get(action.name, {})
        if action.name == "get_msg":
            data = self.earlier[int(action.params["message_id"])]
        answer: Json = {"status": "ok", "retcode": 0, "data": data}
        if action.name in self.refusing:
            answer = {"status": "failed", "retcode": 1200, "data": None, "message": "refused by the test"}
        await socket.send_str(json.dumps({**answer, "echo": call.get("echo")}))


# Pictures, voices, files and quotes as the doors of LangBot take them in: with their bytes, or by an address (B4).

QUOTED = "The meeting is at nine."
ADDRESS = "http://127.0.0.1:9"
"""Nobody listens there: what comes by address is passed on and never fetched."""


def data_url(mime: str, body: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(body).decode()}"


def pictures(request: Request) -> list[str]:
    """The addresses of the pictures in a request, in order."""
    contents = [message.get("content") for message in request.messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return [str(part["image_url"]["url"]) for part in parts if part["type"] == "image_url"]


def last_said(request: Request) -> str:
    """The text of the newest user message."""
    return [text for role, text in request.texts if role == "user"][-1]


def blind(request: Request) -> Reply:
    """A model that refuses requests with pictures."""
    return Reply(status=400) if pictures(request) else say("I cannot see it.")


# On LangBot's own page: components of its message chain.
PICTURE = data_url("image/png", b"a picture")
QUOTED_PICTURE = data_url("image/png", b"an earlier picture")
VOICE = data_url("audio/silk", b"voice!")
PDF = data_url("application/pdf", b"file body")


def picture(body: str = PICTURE) -> dict[str, Any]:
    return {"type": "Image", "base64": body}


def voice() -> dict[str, Any]:
    return {"type": "Voice", "base64": VOICE}


def file(name: str) -> dict[str, Any]:
    return {"type": "File", "name": name, "base64": PDF}


def quote() -> Mapping[str, Any]:
    """A quoted message of a text, a picture and a file."""
    origin = [{"type": "Plain", "text": QUOTED}, picture(QUOTED_PICTURE), file("agenda.pdf")]
    return {"type": "Quote", "id": 7, "sender_id": "9", "origin": origin}


# On the tests' platform: segments of OneBot.
def posted_picture(name: str = "photo.png") -> Json:
    return segment("image", file=name, url=f"{ADDRESS}/{name}")


def posted_voice() -> Json:
    return segment("record", file="memo.amr", url=f"{ADDRESS}/memo.amr")


def posted_file(name: str, *, by_id: bool = False) -> Json:
    """A file by its address, or (`by_id`) by the platform's own name for it, which LangBot cannot fetch."""
    return segment("file", file=name, **({"file_id": "/abc"} if by_id else {"url": f"{ADDRESS}/{name}"}))


def posted_quote(platform: OneBot) -> Json:
    """A quote of a text, a picture, a voice and a file."""
    said = segment("text", text=QUOTED)
    return platform.quotable(said, posted_picture("earlier.png"), posted_voice(), posted_file("agenda.pdf"))
