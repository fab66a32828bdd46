"""Tools the Host grants, with the result and error shapes of their kinds."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from .script import Json

ToolType = Literal["builtin", "skill", "plugin", "mcp", "platform"]


@dataclass(eq=False)
class Tool:
    """A tool in `ctx.resources.tools`.

    `fn` is called with the parameters as keywords, or with one dict when `takes_dict`; it may be async. None: the
    result is `result`. `parameters`: the JSON schema, None for a tool without arguments. `operations`: what is granted.
    """

    name: str
    fn: Callable[..., Any] | None = None
    result: Any = "ok"
    type: ToolType = "plugin"
    description: str = "A tool"
    parameters: Json | None = None
    operations: tuple[str, ...] = ("detail", "call")
    takes_dict: bool = False
    delay: float = 0.0
    calls: list[Json] = field(default_factory=list, init=False)
    running: int = field(default=0, init=False)
    most_at_once: int = field(default=0, init=False)

    @property
    def resource(self) -> Json:
        return {
            "tool_name": self.name,
            "tool_type": self.type,
            "description": self.description,
            "operations": list(self.operations),
            "parameters": self.parameters,
        }

    async def call(self, parameters: Json) -> Any:
        """The raw result, or whatever `fn` raises."""
        self.calls.append(parameters)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.delay)
            if self.fn is None:
                return self.result
            made = self.fn(parameters) if self.takes_dict else self.fn(**parameters)
            return await made if inspect.isawaitable(made) else made
        finally:
            self.running -= 1


class ToolFailed(Exception):
    """A tool failed in the Host: the text is what the Host puts into its error."""


async def execute(tool: Tool, parameters: Json) -> Any:
    """Runs a tool as CALL_TOOL does. Raises `ToolFailed` except for plugin tools, whose failure is an ordinary text
    (langbot/pkg/provider/tools/loaders/plugin.py:invoke_tool; plugin/handler.py:call_tool)."""
    try:
        return await tool.call(parameters)
    except Exception as error:  # a scripted tool may raise anything
        if tool.type == "plugin":
            inner = f"ActionCallError: {type(error).__name__}: {error}"
            return f"error occurred when executing function {tool.name}: {inner}"
        raise ToolFailed(f"Failed to execute tool {tool.name}: {error}") from error


def mcp_content(*parts: Json | str) -> list[Json]:
    """An MCP result: a list of content elements with all their keys (loaders/mcp.py)."""
    empty = dict.fromkeys(("text", "image_url", "image_base64", "file_url", "file_base64", "file_name"))
    return [{**empty, **({"type": "text", "text": part} if isinstance(part, str) else part)} for part in parts]
