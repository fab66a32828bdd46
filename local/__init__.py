"""The second door: the loop of `runner/` on an engine in this process, without LangBot (S0)."""

from local.agent import LocalAgent, create
from local.functions import Functions
from local.llama import LlamaProvider
from local.openai import OpenAIProvider
from local.parts import Error, Finish, MessageStart, Part, Text, ToolCall, ToolError, ToolResult
from local.provider import (
    Availability,
    Available,
    CallFormat,
    ChatTurn,
    CompactTool,
    Downloading,
    Engine,
    GenerateRequest,
    GenerateResult,
    ModelChoice,
    NeedsDownload,
    Provider,
    Unavailable,
)
from local.request import Agent, FinishedCall, Message, Request, RunRequest, Tool, ToolFailed
from local.run import run_local_agent

__all__ = [
    "Agent",
    "Availability",
    "Available",
    "CallFormat",
    "ChatTurn",
    "CompactTool",
    "Downloading",
    "Engine",
    "Error",
    "Finish",
    "FinishedCall",
    "Functions",
    "GenerateRequest",
    "GenerateResult",
    "LlamaProvider",
    "LocalAgent",
    "Message",
    "MessageStart",
    "ModelChoice",
    "NeedsDownload",
    "OpenAIProvider",
    "Part",
    "Provider",
    "Request",
    "RunRequest",
    "Text",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolFailed",
    "ToolResult",
    "Unavailable",
    "create",
    "run_local_agent",
]
