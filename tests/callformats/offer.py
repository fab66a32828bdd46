"""The tools that are on offer where rules of S1 are tested, and a reading in short."""

from __future__ import annotations

from callformats import Fault, Reading, read
from runner.conversation.request import ToolSpec
from runner.host.events import Json


def tool(name: str, required: tuple[str, ...] = (), **properties: str | list[str]) -> ToolSpec:
    members: dict[str, Json] = {key: {"type": value} for key, value in properties.items()}  # type: ignore[dict-item]
    return ToolSpec(name, "", {"type": "object", "properties": members, "required": list(required)})


WRITE = tool("write_file", ("path", "content"), path="string", content="string", append="boolean")
SEARCH = tool("search", ("query",), query="string", limit="integer", filters="object", tags="array")
NOTE = tool("add_note", ("text",), text="string", extra=["string", "object"])
PING = tool("ping")
TOOLS = [WRITE, SEARCH, NOTE, PING]
CALL = '<tool_call>{"name": "search", "arguments": {"query": "x"}}</tool_call>'


def calls(text: str, tools: list[ToolSpec] = TOOLS, **how: object) -> list[tuple[str, dict[str, Json]]]:
    return [(call.name, dict(call.arguments)) for call in read(text, tools, **how).calls]  # type: ignore[arg-type]


def faults(reading: Reading) -> list[Fault]:
    return [refusal.fault for refusal in reading.refusals]
