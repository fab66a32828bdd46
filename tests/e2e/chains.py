"""Pictures, voices, files and quotes as the doors of LangBot take them in: with their bytes, or by an address (B4)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from tests.e2e.onebot import Json, OneBot, segment
from tests.e2e.scripted_model import Reply, Request, say

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
