"""Models that say what a test has written down for them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import legality
from .texts import Reason

Json = dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One tool call of a reply. `arguments`: a JSON-ready value, or the very text the model writes.

    `id` None: the id is made from the position as the Host does for providers without ids, so it repeats over rounds
    (`call_0`). `pieces`: in how many fragments the arguments come.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    pieces: int = 2
    provider_specific_fields: Json | None = None

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Reply:
    """One answer of a model.

    `chunks`: the pieces of `text` themselves, or how many equal ones to cut. `error` fails the call, in a stream after
    `error_after` pieces. `delay` seconds pass before the first event, `chunk_delay` before each further one.
    `interleaved`: fragments of several tool calls take turns. `late_text` comes after `is_final`. `usage` None: counted
    by the test host; `{}`: the provider reports none. `events` replaces the whole stream, item for item, each as
    soon as it comes.
    """

    text: str = ""
    chunks: Sequence[str] | int = 1
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    thinking_blocks: Sequence[Json] = ()
    provider_specific_fields: Json | None = None
    finish_reason: str | None = None
    usage: Json | None = None
    late_text: str = ""
    error: Reason | str | None = None
    error_after: int = 0
    delay: float = 0.0
    chunk_delay: float = 0.0
    interleaved: bool = False
    events: Sequence[Json] | AsyncIterator[Json] | None = None

    @property
    def pieces(self) -> list[str]:
        if not isinstance(self.chunks, int):
            return list(self.chunks)
        return cut(self.text, self.chunks)

    @property
    def full_text(self) -> str:
        return self.text or ("" if isinstance(self.chunks, int) else "".join(self.chunks))

    @property
    def stop(self) -> str:
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


def cut(text: str, pieces: int) -> list[str]:
    """`text` in at most `pieces` parts of nearly equal length, none empty."""
    if not text:
        return []
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + size] for start in range(0, len(text), size)]


@dataclass(frozen=True)
class ModelRequest:
    """One request as the provider gets it from the Host.

    `messages`: after the Host's conversion (file parts gone, images as `image_url`, unset fields left out). `funcs`:
    the schemas that reach the provider; `offered`: those the plugin sent. `level` and `remove_think`: as the plugin
    passed them, None when it left them out; `thinking_removed`: what held in the end. `tokens`: counted size.
    """

    model: str
    stream: bool
    messages: list[Json]
    funcs: list[Json]
    offered: list[Json]
    extra_args: Json
    level: str | None
    remove_think: bool | None
    thinking_removed: bool
    tokens: int

    @property
    def system(self) -> str:
        """The text of the system messages."""
        return "\n".join(text_of(message) for message in self.messages if message["role"] == "system")

    @property
    def last_user(self) -> str:
        """The text of the newest user message."""
        return next((text_of(one) for one in reversed(self.messages) if one["role"] == "user"), "")

    @property
    def roles(self) -> list[str]:
        return [str(message["role"]) for message in self.messages]

    @property
    def tool_names(self) -> list[str]:
        return [str(func["name"]) for func in self.funcs]

    def violations(
        self, *, private: Collection[str] = ("_localagent",), ignore: Collection[legality.Rule] = ()
    ) -> list[legality.Violation]:
        """Broken rules of the providers, tools included: see `legality`."""
        return legality.violations(self.messages, self.funcs, private=private, ignore=ignore)

    @property
    def text(self) -> str:
        """All text of the request, message by message."""
        return "\n".join(text_of(message) for message in self.messages)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, its text parts joined by line ends."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if part.get("type") == "text")
    return str(content or "")


Scripted = Reply | str | Callable[[ModelRequest], "Reply | str | Awaitable[Reply | str]"]


def echo(request: ModelRequest) -> Reply:
    """What a model answers when its script is at an end."""
    return Reply(f"Echo: {request.last_user}")


@dataclass(eq=False)
class Model:
    """A language model bound to the Host.

    `replies` are used up in order, then `default` answers. An entry may be a text, a `Reply`, or a callable of the
    request. `abilities` as in LangBot: `func_call`, `vision`, `reasoning`. `window` (tokens): larger requests fail with
    "Context length exceeded". `family`: which reasoning fields the requester moves on replay ("anthropic",
    "deepseek", …). `counting` False: the requester cannot count tokens. `rerank` True: a rerank model, whose `score`
    of query and document is shared words unless given. `aborted`: streams the plugin closed before their end.
    """

    id: str
    replies: Sequence[Scripted] = ()
    default: Scripted = echo
    abilities: frozenset[str] = frozenset({"func_call", "vision", "reasoning"})
    levels: Sequence[str] = ("disabled", "enabled", "minimal", "low", "medium", "high", "xhigh", "max")
    window: int | None = None
    family: str = ""
    counting: bool = True
    operations: frozenset[str] = frozenset({"invoke", "stream", "count_tokens"})
    extra_args: Json = field(default_factory=dict)
    rerank: bool = False
    score: Callable[[str, str], float] | None = None
    rerank_error: Reason | str | None = None
    requests: list[ModelRequest] = field(default_factory=list, init=False)
    reranked: list[tuple[str, list[str]]] = field(default_factory=list, init=False)
    aborted: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._queue = list(self.replies)

    def say(self, *replies: Scripted) -> None:
        """Adds to the script."""
        self._queue.extend(replies)

    @property
    def unsaid(self) -> int:
        """How many scripted replies were never asked for."""
        return len(self._queue)

    async def answer(self, request: ModelRequest) -> Reply:
        scripted = self._queue.pop(0) if self._queue else self.default
        if callable(scripted):
            made = scripted(request)
            scripted = await made if isinstance(made, Awaitable) else made
        return Reply(scripted) if isinstance(scripted, str) else scripted
