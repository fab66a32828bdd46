"""Providers that say what a test wrote down, and requests for them: the border of the process is the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from local import (
    Agent,
    Availability,
    Available,
    ChatTurn,
    CompactTool,
    GenerateRequest,
    GenerateResult,
    Message,
    Part,
    Provider,
    Request,
    Text,
    Tool,
    run_local_agent,
)
from local.provider import OnProgress
from tests.written import CITY
from weights.catalogue import CATALOGUE, cache_folder
from weights.fetch import Watcher, fetch

WEATHER = Tool("get_weather", "Tells the weather of a city.", CITY)
SEND = Tool("send_card", "Sends a card to a city.", CITY)

Step = str | Exception | Callable[[GenerateRequest], Awaitable[str]]


class Scripted(Provider):
    """Answers with one step after another; the last one is repeated. Keeps every request.

    `most` is how many characters of prompt fit; None: everything.
    """

    def __init__(self, *steps: Step, name: str = "scripted", most: int | None = None, **members: Any) -> None:
        self.id = name
        self.label = name.title()
        self.steps = list(steps)
        self.requests: list[GenerateRequest] = []
        self.state: Availability = Available()
        self.prepared = 0
        self.disposed = 0
        self.breaks: str | None = None
        self._most = most
        for member, value in members.items():
            setattr(self, member, value)

    async def availability(self) -> Availability:
        return self.state

    async def prepare(self, on_progress: OnProgress) -> None:
        self.prepared += 1
        if self.breaks is not None:
            self.broken = self.breaks
            raise RuntimeError(self.breaks)
        on_progress(1.0)
        self.state = Available()

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        place = min(len(self.requests), len(self.steps) - 1)
        self.requests.append(request)
        step = self.steps[place]
        if isinstance(step, Exception):
            raise step
        return GenerateResult(step if isinstance(step, str) else await step(request))

    async def fits(self, system: str, messages: Sequence[ChatTurn], tools: Sequence[CompactTool]) -> bool:
        size = len(system) + sum(len(turn.content) for turn in messages)
        size += sum(len(tool.description) + len(json.dumps(dict(tool.parameters))) for tool in tools)
        return self._most is None or size <= self._most

    def dispose(self) -> None:
        self.disposed += 1


def streamed(*pieces: str) -> Step:
    """A reply that is told piece by piece."""

    async def step(request: GenerateRequest) -> str:
        for piece in pieces:
            request.on_token(piece)
            await asyncio.sleep(0)
        return "".join(pieces)

    return step


async def forever(request: GenerateRequest) -> str:
    """A generation that only ends when it is cancelled."""
    await asyncio.Event().wait()
    return ""


async def stubborn(request: GenerateRequest) -> str:
    """A generation that takes no notice of being cancelled; only the end of the test's own loop ends it."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()
    return ""


class Called:
    """Tools as the place runs them: each call is kept; a result may be a value, an exception or a function."""

    def __init__(self, **results: Any) -> None:
        self.results = results
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> object:
        self.calls.append((name, dict(arguments)))
        result = self.results.get(name, "ok")
        if isinstance(result, Exception):
            raise result
        return result(dict(arguments)) if callable(result) else result


def asking(
    text: str = "How is the weather in Oslo?",
    *,
    tools: Sequence[Tool] | Callable[[], Sequence[Tool]] = (WEATHER,),
    call: Callable[[str, Mapping[str, Any]], Awaitable[object]] | None = None,
    before: Sequence[Message] = (),
    stop: asyncio.Event | None = None,
    agent: Agent | None = None,
) -> Request:
    """A request whose newest message is `text`."""
    return Request(
        [*before, Message("user", text)],
        tools if callable(tools) else lambda: tools,
        call or Called(get_weather="It is sunny and 21 degrees."),
        stop or asyncio.Event(),
        agent or Agent(),
    )


async def parts_of(provider: Any, request: Any, **options: Any) -> list[Part]:
    """All parts of a run; a run that hangs fails the test."""
    async with asyncio.timeout(20):
        return [part async for part in run_local_agent(provider, request, **options)]


def text_of(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def types_of(parts: Sequence[Part]) -> list[str]:
    """The types in order, runs of text as one."""
    types = [part.type for part in parts]
    return [each for place, each in enumerate(types) if each != "text" or place == 0 or types[place - 1] != "text"]


def last_user(request: GenerateRequest) -> str:
    """The newest user turn of a prompt."""
    return next(turn.content for turn in reversed(request.messages) if turn.role == "user")


def many() -> list[Tool]:
    """More tools than are shown at once."""
    return [Tool(f"tool_{number}", f"Does thing number {number}.", CITY) for number in range(12)]


def shown_tools(request: GenerateRequest) -> list[str]:
    """The tools of the place that a prompt shows in full."""
    return [tool.name for tool in request.tools if tool.name not in ("reply_to_user", "load_tool")]


# The smallest real model, fetched as the demo fetches its own.

SMALLEST = CATALOGUE["135m"]


def smallest() -> Path:
    """The path of the checked file. Raises StepFailed where it can neither be found nor fetched."""
    return fetch(SMALLEST, cache_folder(), Watcher(lambda line: None))
