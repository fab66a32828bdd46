"""A model behind an OpenAI-compatible server (Ollama, llama.cpp, LM Studio, vLLM) as a provider (Sk)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import urlsplit

import httpx

from local.openai_reply import MAX_LINE, Lines, Reply, ServerFailed, model_names, parsed, words
from local.provider import (
    Availability,
    Available,
    CallFormat,
    GenerateRequest,
    GenerateResult,
    OnProgress,
    Provider,
    Unavailable,
)
from local.turns import chat_rows

_LOOK: Final = httpx.Timeout(10)
_REPLY: Final = httpx.Timeout(30, read=600)
"""Seconds. A slow machine may read a long prompt for minutes; the loop's own limit for a step ends it earlier."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_CALM: Final = 0.2
_FORMATS: Final = ("guided", "json")


class OpenAIProvider(Provider):
    """One model of a server; `base_url` ends before `/chat/completions`, as `http://127.0.0.1:11434/v1`.

    Tools stand in the prompt, so that every server and model can have them; "guided" holds replies to a JSON schema
    where the server takes one. Raises ValueError for an address, a key or a call format that cannot be used.
    """

    id = "openai"
    tools_inline = True

    def __init__(self, base_url: str, model: str, api_key: str = "", *, call_format: CallFormat = "guided") -> None:
        self._base = _address(base_url)
        if not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("the key holds characters that no key has: copy it again, without line breaks")
        if call_format not in _FORMATS:
            raise ValueError(f"a server takes the call formats {' and '.join(_FORMATS)}, not {call_format!r}")
        self.label = f"{model} at {self._base}"
        self.call_format = call_format
        self._model = model
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # Unpacked, a small answer could be larger than any bound.
        self._headers = {"Accept-Encoding": "identity", **key}
        self._takes_schema = True

    async def availability(self) -> Availability:
        """Whether the server answers and takes the key. A server without a list of models counts as available."""
        try:
            status, value = await self._get_models()
        except ServerFailed as failure:
            return Unavailable(str(failure))
        if status in (401, 403):
            return Unavailable(self._refused(status, value, []))
        return Available()

    async def prepare(self, on_progress: OnProgress) -> None:
        """Nothing is loaded here: the server does that."""
        on_progress(1.0)

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        """Raises ServerFailed, with what to do next."""
        body = self._body(request)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._client(_REPLY))
            try:
                response = await self._open(client, stack, body)
                if response.status_code == 400 and body.pop("response_format", None):
                    response = await self._open(client, stack, body)
                    self._takes_schema = response.status_code != 200
                if response.status_code != 200:
                    raise ServerFailed(await self._why(response))
                return await _read(response, request)
            except httpx.HTTPError as error:
                raise ServerFailed(self._lost(error)) from error

    async def _open(
        self, client: httpx.AsyncClient, stack: AsyncExitStack, body: Mapping[str, object]
    ) -> httpx.Response:
        return await stack.enter_async_context(client.stream("POST", f"{self._base}/chat/completions", json=body))

    def _client(self, timeout: httpx.Timeout) -> httpx.AsyncClient:
        # A proxy of the machine leads nowhere near its own loopback. A redirect would take the key along.
        direct = urlsplit(self._base).hostname in _LOOPBACK
        return httpx.AsyncClient(timeout=timeout, headers=self._headers, trust_env=not direct)

    def _body(self, request: GenerateRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self._model,
            "messages": chat_rows(request.system, request.messages, told=True),
            "stream": True,
            "temperature": _CALM if request.temperature is None else request.temperature,
        }
        if request.schema is not None and self._takes_schema:
            wanted = {"name": "reply", "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return body

    async def _get_models(self) -> tuple[int, object]:
        """Raises ServerFailed where nobody answers."""
        try:
            async with self._client(_LOOK) as client, client.stream("GET", f"{self._base}/models") as response:
                return response.status_code, parsed(await _whole(response))
        except httpx.HTTPError as error:
            raise ServerFailed(self._lost(error)) from error

    async def _why(self, response: httpx.Response) -> str:
        value = parsed(await _whole(response))
        names: list[str] = []
        if response.status_code in (400, 404):
            _, listed = await self._get_models()
            names = model_names(listed)
        return self._refused(response.status_code, value, names)

    def _refused(self, status: int, value: object, names: list[str]) -> str:
        said = f"{self._base} answers {status} ({words(value)})"
        if status in (401, 403):
            return f"{said}: put the server's key into MODEL_API_KEY, or give it as api_key"
        if names and self._model not in names:
            return f"{said}: it has no model {self._model!r} but {', '.join(names)}"
        if status == 404:
            return f"{said}: check the address; most servers want /v1 at its end"
        return f"{said}: look at the server's own log"

    def _lost(self, error: httpx.HTTPError) -> str:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return f"nobody answers at {self._base}: start the server, or check the address and its port"
        if isinstance(error, httpx.TimeoutException):
            return f"{self._base} took too long: it may still load the model; try again, or take a smaller one"
        return f"the connection to {self._base} broke off ({type(error).__name__}): ask again, or look at its log"


async def _read(response: httpx.Response, request: GenerateRequest) -> GenerateResult:
    reply = Reply()
    if "json" in response.headers.get("content-type", ""):
        request.on_token(reply.take_json(await _whole(response)))
        return GenerateResult(reply.text, reply.cut)
    lines = Lines()
    async for data in response.aiter_bytes():
        for line in lines.take(data):
            if text := reply.take(line):
                request.on_token(text)
    if text := reply.take(lines.end()):
        request.on_token(text)
    if not reply.ended:
        raise ServerFailed("the server's reply breaks off before its end: ask again, or look at the server's log")
    return GenerateResult(reply.text, reply.cut)


async def _whole(response: httpx.Response) -> str:
    """An answer that is no stream. Raises ServerFailed where it is longer than one can be."""
    taken = bytearray()
    async for data in response.aiter_bytes():
        taken += data
        if len(taken) > MAX_LINE:
            raise ServerFailed("the server sends too much: is this the address of a model's server?")
    return taken.decode("utf-8", "replace")


def _address(written: str) -> str:
    """The address in one form. Raises ValueError for what no request can be sent to."""
    try:
        parts = urlsplit(written.strip())
        whole = str(httpx.URL(parts.geturl()))
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        known = False
    if not known:
        raise ValueError(f"{written!r} is no address of a server: it looks like http://127.0.0.1:11434/v1")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("the address may hold no user, query or fragment: a key belongs into MODEL_API_KEY")
    return whole.rstrip("/").removesuffix("/chat/completions")
