"""A chat in the terminal: what was said, what the agent says, and the tools of the demo."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

from everyday.components.tools.declared import declared
from everyday.components.tools.desk import Desk, here_and_now
from everyday.components.tools.failing import CannotDo
from everyday.components.tools.notebook import Notebook
from local.agent import LocalAgent
from local.parts import Error, Finish, MessageStart, Part, Text, ToolCall, ToolError, ToolResult
from local.request import FinishedCall, Message, Request, Tool, ToolFailed
from runner.host.events import Json

TOOLS = tuple(Tool(tool.name, tool.description, tool.parameters) for tool in declared())


@dataclass(slots=True)
class Chat:
    """One conversation. `write` puts text on the terminal as it is; `now` tells the time for the tools.

    Its notebook is gone with it.
    """

    agent: LocalAgent
    write: Callable[[str], None]
    now: Callable[[], datetime] = here_and_now
    messages: list[Message] = field(default_factory=list)
    _notes: bytes = b""

    async def say(self, text: str) -> None:
        """One message of the user and everything that comes of it; it is remembered once the agent is done."""
        answering = asyncio.ensure_future(self._answer(text))
        try:
            await asyncio.shield(answering)
        except asyncio.CancelledError:
            self.write("\n[stopping; this takes some seconds]\n")
            answering.cancel()
            await asyncio.wait({answering})
            raise

    async def _answer(self, text: str) -> None:
        asked = [*self.messages, Message("user", text)]
        steps = _Steps()
        async with aclosing(self.agent.run(Request(asked, self._tools, self._call))) as parts:
            async for part in parts:
                steps.take(part)
                self.write(shown(part))
        self.messages = [*asked, *steps.messages]

    def _tools(self) -> Sequence[Tool]:
        return TOOLS

    async def _call(self, name: str, arguments: Mapping[str, Json]) -> Json:
        try:
            return await Desk(self.now, Notebook(self._load, self._save)).call(name, arguments)
        except CannotDo as refused:
            raise ToolFailed(str(refused)) from refused

    async def _load(self) -> bytes:
        return self._notes

    async def _save(self, notes: bytes) -> None:
        self._notes = notes


@dataclass(slots=True)
class _Steps:
    """The assistant's messages of one run, for the conversation that goes on."""

    messages: list[Message] = field(default_factory=list)
    _calls: dict[str, ToolCall] = field(default_factory=dict)

    def take(self, part: Part) -> None:
        match part:
            case MessageStart():
                self.messages.append(Message("assistant"))
            case Text():
                self._last(part.text)
            case ToolCall():
                self._calls[part.id] = part
            case ToolResult():
                self._last(call=FinishedCall(part.name, self._calls[part.id].arguments, part.result))
            case ToolError():
                self._last(call=FinishedCall(part.name, self._calls[part.id].arguments, error=part.error))

    def _last(self, text: str = "", call: FinishedCall | None = None) -> None:
        last = self.messages[-1]
        calls = (*last.calls, call) if call else last.calls
        self.messages[-1] = Message("assistant", last.text + text, calls)


def shown(part: Part) -> str:
    """A part as the terminal shows it; what came from a model or a tool loses its control characters."""
    match part:
        case Text():
            return plain(part.text)
        case ToolCall():
            return plain(f"[{part.name} {dict(part.arguments)}]\n")
        case ToolError():
            return plain(f"[{part.name} failed: {part.error}]\n")
        case Error():
            return f"{part.text}\n"
        case Finish():
            return "\n" if part.reason == "stop" else f"\n[{part.reason}]\n"
    return ""


def plain(text: str) -> str:
    """The text without characters that could drive a terminal; line breaks and tabs stay."""
    return "".join(each for each in text if each.isprintable() or each in "\n\t")
