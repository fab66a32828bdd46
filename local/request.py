"""What a run on this door is asked: the conversation, the tools as they are now, a stop signal, a way to call tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from runner.host.events import Json


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer. `parameters` is a JSON Schema of an object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call of an earlier message: what came of it, or `error` where it failed."""

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    result: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation. `calls`: what the assistant called in it, in order; only in its messages."""

    role: Literal["user", "assistant"]
    text: str = ""
    calls: Sequence[FinishedCall] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """What whoever offers the tools wants: it wins over the options of the run."""

    max_steps: int | None = None
    instructions: str | None = None


class ToolFailed(Exception):
    """Raise it in `call_tool` to tell the model why a tool failed; the text is shown to it as data."""


CallTool = Callable[[str, Mapping[str, Json]], Awaitable[object]]
"""Name and arguments of a call; gives any JSON value. Whatever it raises is a failed call, not a failed run."""


class RunRequest(Protocol):
    """A run. `tools` is read afresh at every step, since tools may change while a run works."""

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def tools(self) -> Sequence[Tool]: ...

    @property
    def stop(self) -> asyncio.Event:
        """Set it to end the run."""

    @property
    def agent(self) -> Agent: ...

    async def call_tool(self, name: str, arguments: Mapping[str, Json]) -> object: ...


@dataclass(frozen=True, slots=True)
class Request:
    """A `RunRequest` made of its pieces. `offer` gives the tools as they are when it is called."""

    messages: Sequence[Message]
    offer: Callable[[], Sequence[Tool]] = tuple
    call: CallTool | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    agent: Agent = field(default_factory=Agent)

    @property
    def tools(self) -> Sequence[Tool]:
        return self.offer()

    async def call_tool(self, name: str, arguments: Mapping[str, Json]) -> object:
        """Raises ToolFailed where nobody runs tools."""
        if self.call is None:
            raise ToolFailed("nobody runs tools here")
        return await self.call(name, arguments)
