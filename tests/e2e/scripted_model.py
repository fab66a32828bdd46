"""An OpenAI-compatible model that says what a test wrote down, for the real LangBot to call over HTTP.

It runs in a thread with an event loop of its own, so a test that blocks for a moment does not hold a stream up.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, ClientTimeout, web

from tests.e2e.served import ModelServed

# A JSON value on the wire.
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a reply. `arguments` is sent as it stands, also when it is no JSON."""

    name: str
    arguments: str = "{}"
    id: str = "call_0"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    `chunks` are sent one event each (a reply that is not streamed joins them). `gate` holds the reply back after its
    first chunk until the test opens it. `status` 400 or more sends an error instead; `overflow` sends the provider's
    words for a request beyond the window; `hang` never answers; `drop_after` closes the connection after that many
    chunks. `for_model` limits a reply to requests for that model name. Delays are in seconds.
    """

    chunks: Sequence[str] = ()
    reasoning: str = ""
    calls: Sequence[Call] = ()
    finish_reason: str = ""
    prompt_tokens: int = 7
    completion_tokens: int = 3
    first_delay: float = 0.0
    chunk_delay: float = 0.0
    gate: str = ""
    status: int = 200
    overflow: bool = False
    hang: bool = False
    drop_after: int | None = None
    for_model: str = ""

    @property
    def text(self) -> str:
        return "".join(self.chunks)

    @property
    def finish(self) -> str:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")


def say(text: str, size: int = 8, **rest: Any) -> Reply:
    """A reply that streams `text` in chunks of `size` characters."""
    return Reply(chunks=tuple(text[i : i + size] for i in range(0, len(text), size)), **rest)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the endpoint received it."""

    body: Json
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        return str(self.body["model"])

    @property
    def messages(self) -> list[Json]:
        return list(self.body["messages"])

    @property
    def texts(self) -> list[tuple[str, str]]:
        """(role, text) of each message; the text parts of structured content are joined."""
        return [(str(message["role"]), text_of(message.get("content"))) for message in self.messages]

    def holds(self, text: str) -> int:
        """How many times `text` occurs in the messages."""
        return sum(said.count(text) for _, said in self.texts)


def text_of(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def echo(request: Request) -> Reply:
    """What the model says when nothing is written down for it."""
    said = next((text for role, text in reversed(request.texts) if role == "user"), "")
    return say(f"echo: {said}")


@dataclass(slots=True)
class _Book:
    """What the test wrote down, and what came in."""

    replies: list[Reply] = field(default_factory=list)
    otherwise: Callable[[Request], Reply] = echo
    requests: list[Request] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)

    def next_reply(self, request: Request) -> Reply:
        for index, reply in enumerate(self.replies):
            if reply.for_model in ("", request.model):
                return self.replies.pop(index)
        return self.otherwise(request)


class ScriptedModel(ModelServed):
    """`with ScriptedModel() as model: model.script(say("Hello"))`; `model.base_url` ends in /v1."""

    def __init__(self) -> None:
        super().__init__()
        self._book = _Book()

    # -- for the test -----------------------------------------------------------
    def script(self, *replies: Reply, otherwise: Callable[[Request], Reply] = echo) -> None:
        """Forget what was written down and received, and write these replies down; when they are used up, `otherwise`
        answers from the request."""
        self.do(self._write(replies, otherwise))

    @property
    def requests(self) -> list[Request]:
        """The chat requests since the last `script`, in order of arrival."""
        return list(self._book.requests)

    @property
    def ended(self) -> list[float]:
        """When the last chunk of each streamed reply since the last `script` was sent (time.monotonic())."""
        return list(self._book.ended)

    def open(self, gate: str) -> None:
        self._loop.call_soon_threadsafe(lambda: self._book.gates.setdefault(gate, asyncio.Event()).set())

    # -- the server -------------------------------------------------------------
    async def _write(self, replies: Sequence[Reply], otherwise: Callable[[Request], Reply]) -> None:
        self._book = _Book(replies=list(replies), otherwise=otherwise)

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        book = self._book
        received = Request(await request.json(), dict(request.headers))
        book.requests.append(received)
        reply = book.next_reply(received)
        if reply.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(reply.first_delay)
        if reply.overflow:
            return _overflow()
        if reply.status >= 400:
            error = {"message": "scripted failure", "type": "server_error", "code": "scripted"}
            return web.json_response({"error": error}, status=reply.status)
        if not received.body.get("stream"):
            await self._pass(book, reply.gate)
            return web.json_response(_whole(received, reply))
        return await self._stream(request, received, reply, book)

    async def _stream(self, request: web.Request, received: Request, reply: Reply, book: _Book) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for index, (delta, finish) in enumerate(_deltas(reply)):
            if index == 2:
                await self._pass(book, reply.gate)
            if reply.drop_after is not None and index > reply.drop_after:
                if request.transport is not None:
                    request.transport.abort()
                return response
            await _event(response, _chunk(received, [{"index": 0, "delta": delta, "finish_reason": finish}]))
            if reply.chunk_delay:
                await asyncio.sleep(reply.chunk_delay)
        book.ended.append(time.monotonic())
        if (received.body.get("stream_options") or {}).get("include_usage"):
            await _event(response, {**_chunk(received, []), "usage": _usage(reply)})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    @staticmethod
    async def _pass(book: _Book, gate: str) -> None:
        if gate:
            await book.gates.setdefault(gate, asyncio.Event()).wait()


def _deltas(reply: Reply) -> list[tuple[Json, str | None]]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if reply.reasoning:
        deltas.append({"reasoning_content": reply.reasoning})
    deltas += [{"content": chunk} for chunk in reply.chunks]
    for index, call in enumerate(reply.calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        deltas.append({"tool_calls": [head]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": call.arguments[i : i + 12]}}]}
            for i in range(0, len(call.arguments), 12)
        ]
    return [*((delta, None) for delta in deltas), ({}, reply.finish)]


async def _event(response: web.StreamResponse, payload: Json) -> None:
    await response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")


def _chunk(received: Request, choices: list[Json]) -> Json:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": received.model,
        "choices": choices,
    }


def _usage(reply: Reply) -> Json:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def _whole(received: Request, reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return {**_chunk(received, [choice]), "object": "chat.completion", "usage": _usage(reply)}


def _overflow() -> web.Response:
    message = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
    error = {
        "message": message,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    return web.json_response({"error": error}, status=400)


# Stands between LangBot and a real model: passes everything on, and keeps what was asked and answered.

_SECONDS = 600.0


@dataclass(slots=True)
class Exchange:
    """One chat request as it went to the model, and the text of the answer as it came back, tool calls left out."""

    body: dict[str, Any]
    answer: str = ""

    @property
    def guided(self) -> bool:
        """Whether a JSON schema went with the request."""
        return "response_format" in self.body

    @property
    def text(self) -> str:
        return json.dumps(self.body["messages"], ensure_ascii=False)


class Recorder(ModelServed):
    """`with Recorder("http://127.0.0.1:8080/v1") as recorder:`; LangBot asks `recorder.base_url`."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target
        self.exchanges: list[Exchange] = []

    async def models(self, request: web.Request) -> web.Response:
        async with ClientSession() as session, session.get(f"{self._target}/models") as answer:
            return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        exchange = Exchange(await request.json())
        self.exchanges.append(exchange)
        async with (
            ClientSession(timeout=ClientTimeout(total=_SECONDS)) as session,
            session.post(f"{self._target}/chat/completions", json=exchange.body) as answer,
        ):
            passed = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await passed.prepare(request)
            whole = b""
            async for chunk in answer.content.iter_any():
                whole += chunk
                await passed.write(chunk)
            exchange.answer = _text_of(whole)
            await passed.write_eof()
            return passed


def _text_of(answer: bytes) -> str:
    """The words of a streamed answer; of another one, all of it."""
    lines = answer.decode("utf-8", "replace").splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    if not events:
        return answer.decode("utf-8", "replace")
    choices = [choice for event in events for choice in event.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
