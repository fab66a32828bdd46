"""A chat in the terminal: what was said, what the agent says, and two sample tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from local.agent import LocalAgent
from local.parts import Error, Finish, MessageStart, Part, Text, ToolCall, ToolError, ToolResult
from local.request import FinishedCall, Message, Request, Tool, ToolFailed
from runner.host.events import Json

TOOLS = (
    Tool("get_time", "Tells the date and the time of day, in UTC."),
    Tool(
        "add_note",
        "Adds a short note for the user and tells how many there are.",
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
)


@dataclass(slots=True)
class Chat:
    """One conversation. `write` puts text on the terminal as it is; `now` tells the time for the sample tool."""

    agent: LocalAgent
    write: Callable[[str], None]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    messages: list[Message] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    async def say(self, text: str) -> None:
        """One message of the user and everything that comes of it; it is remembered once the agent is done."""
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
        if name == "get_time":
            return f"{self.now():%A, %Y-%m-%d %H:%M} UTC"
        if name == "add_note":
            self.notes.append(str(arguments["text"]))
            return {"added": self.notes[-1], "notes": len(self.notes)}
        raise ToolFailed(f"there is no tool {name}")


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
