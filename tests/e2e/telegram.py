"""Telegram, as far as a bot sees it: the Bot API behind a tunnel, which LangBot's own adapter talks to.

The adapter's address cannot be set, so LangBot is told of a proxy and of an authority of the tests' own. The proxy
leads `api.telegram.org` here and refuses every other host.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.served import Served

# A JSON value on the wire.
Json = dict[str, Any]

HOST: Final = "api.telegram.org"
TOKEN: Final = "1731:not-a-secret"
_POLL: Final = 1.0
"""Seconds that a poll without news is held."""

_BOT: Final[Json] = {"id": 1731, "is_bot": True, "first_name": "Heron", "username": "heron_bot"}
_CHATS: Final = count(5000)


@dataclass(frozen=True, slots=True)
class Done:
    """A method of the Bot API that the bot called."""

    method: str
    params: Json

    @property
    def text(self) -> str:
        return str(self.params.get("text") or "")

    @property
    def buttons(self) -> list[Json]:
        """The buttons below a message, in order: `text` and `callback_data`."""
        return [
            button for row in (self.params.get("reply_markup") or {}).get("inline_keyboard") or () for button in row
        ]


class Telegram(Served):
    """`with Telegram(folder) as telegram:`; LangBot is started with `telegram.variables`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._authority, self._certificate = folder / "authority.pem", folder / "telegram.pem"
        _certify(self._authority, self._certificate)
        self._numbers = count(1)
        self._news: asyncio.Queue[Json] = asyncio.Queue()
        self._tunnel = 0
        self.done: list[Done] = []

    @property
    def variables(self) -> dict[str, str]:
        """What LangBot's process is told by its environment."""
        proxy = f"http://127.0.0.1:{self._tunnel}"
        return {"HTTPS_PROXY": proxy, "https_proxy": proxy, "SSL_CERT_FILE": str(self._authority)}

    # -- for the test -----------------------------------------------------------
    def chat(self, *, group: bool = False) -> Chat:
        """A chat of its own."""
        return Chat(self, -next(_CHATS) if group else next(_CHATS), group)

    def tell(self, update: Json) -> None:
        self._loop.call_soon_threadsafe(self._news.put_nowait, {"update_id": next(self._numbers), **update})

    def number(self) -> int:
        return next(self._numbers)

    # -- the server -------------------------------------------------------------
    def routes(self) -> list[web.AbstractRouteDef]:
        return [web.post(f"/bot{TOKEN}/{{method}}", self._answer)]

    def secured(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._certificate)
        return context

    async def _listen(self) -> None:
        await super()._listen()
        tunnel = await asyncio.start_server(self._lead, "127.0.0.1", 0)
        self._tunnel = tunnel.sockets[0].getsockname()[1]

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(f"CONNECT {HOST}:443 ".encode()):
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            writer.close()
            return
        further, back = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with suppress(OSError):
            await asyncio.gather(_carry(reader, back), _carry(further, writer))

    async def _answer(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        params = await _params(request)
        if method == "getUpdates":
            return _ok(await self._updates())
        self.done.append(Done(method, params))
        return _ok(self._result(method, params))

    async def _updates(self) -> list[Json]:
        with suppress(TimeoutError):
            return [await asyncio.wait_for(self._news.get(), _POLL)]
        return []

    def _result(self, method: str, params: Json) -> object:
        if method == "getMe":
            return _BOT
        if not method.startswith(("send", "edit")):
            return True
        chat = int(params.get("chat_id") or 0)
        kind = "private" if chat > 0 else "supergroup"
        return {
            "message_id": int(params.get("message_id") or 0) or next(self._numbers),
            "date": int(time.time()),
            "from": _BOT,
            "chat": {"id": chat, "type": kind},
            "text": params.get("text"),
        }


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat in which people write and press."""

    telegram: Telegram
    id: int
    group: bool

    @property
    def conversation(self) -> str:
        """LangBot's id of the conversation."""
        return f"{'group' if self.group else 'person'}_{self.id}"

    def says(self, text: str, who: int | None = None, name: str = "Ann") -> None:
        self.telegram.tell({"message": {**self._place(), "from": self._person(who, name), "text": text}})

    def presses(self, card: Done, button: int = 0, who: int | None = None, name: str = "Ann") -> None:
        query = {
            "id": str(self.telegram.number()),
            "from": self._person(who, name),
            "chat_instance": "1",
            "data": card.buttons[button]["callback_data"],
            "message": {**self._place(), "from": _BOT, "text": card.text},
        }
        self.telegram.tell({"callback_query": query})

    def _place(self) -> Json:
        kind = {"type": "supergroup", "title": "Birds"} if self.group else {"type": "private", "first_name": "Ann"}
        return {"message_id": self.telegram.number(), "date": int(time.time()), "chat": {"id": self.id, **kind}}

    def _person(self, who: int | None, name: str) -> Json:
        return {"id": who or abs(self.id), "is_bot": False, "first_name": name}

    @property
    def seen(self) -> list[Done]:
        """What the bot sent here, in order."""
        sent = ("sendMessage", "editMessageText")
        return [
            d for d in list(self.telegram.done) if d.method in sent and str(d.params.get("chat_id")) == str(self.id)
        ]

    @property
    def cards(self) -> list[Done]:
        return [done for done in self.seen if done.buttons]

    def wait(self, what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
        """Return once `holds`. Raises TimeoutError that tells what the bot did instead."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} after {seconds:.0f} s; the bot did {self.telegram.done[-20:]}")
            time.sleep(0.05)

    def wait_for(self, text: str) -> Done:
        """The first message here that holds a text."""
        self.wait(repr(text), lambda: any(text in done.text for done in self.seen))
        return next(done for done in self.seen if text in done.text)


def _ok(result: object) -> web.Response:
    return web.json_response({"ok": True, "result": result})


async def _params(request: web.Request) -> Json:
    """The parameters of a method: forms hold objects as JSON."""
    if request.content_type == "application/json":
        return dict(await request.json())
    form = await request.post()
    return {name: _value(value) for name, value in form.items()}


def _value(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.loads(value)
    return value


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65_536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


def _certify(authority: Path, certificate: Path) -> None:
    """Write an authority, and a certificate of Telegram's host with its key, for a day."""
    signer = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
    root = _signed(issuer, issuer, signer.public_key(), signer, x509.BasicConstraints(ca=True, path_length=None))
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    names = x509.SubjectAlternativeName([x509.DNSName(HOST)])
    leaf = _signed(subject, issuer, key.public_key(), signer, names)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    authority.write_bytes(root.public_bytes(pem))
    certificate.write_bytes(leaf.public_bytes(pem) + private)


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(extension, critical=True)
    )
    return builder.sign(signer, hashes.SHA256())
