"""Chats in which tools ask first: a host, its tools that count, and what a model does with them."""

from __future__ import annotations

from typing import Any

from tests.host import ModelRequest, Reply, TestHost, Tool, ToolCall
from tests.runs.scenes import host_with

PAY_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}}}
PAY = ToolCall("pay", {"to": "Bob", "amount": 5})
ASKS = {"ask-before-tools": "changes", "notice-language": "en_US", "date-grounding": False}
WANTED = "Before I do this, I need your consent:"


def pay(result: Any = "paid", **given: Any) -> Tool:
    return Tool("pay", result=result, parameters=PAY_SCHEMA, **given)


def chat(*tools: Tool, replies: Any = None, config: dict[str, Any] | None = None, **given: Any) -> TestHost:
    """A host whose model calls `pay` first, and then says what it knows."""
    return host_with(
        tools=list(tools) or [pay()],
        replies=replies or [Reply("I will pay. ", tool_calls=[PAY])],
        config={**ASKS, **(config or {})},
        **given,
    )


def ran(host: TestHost, tool: str = "pay") -> list[dict[str, Any]]:
    """The arguments of each time the tool was really asked, in any run."""
    return [
        call.data["parameters"]
        for run in host.runs
        for call in run.calls.of("call_tool")
        if call.data["tool_name"] == tool
    ]


def open_keys(host: TestHost, conversation: str = "person_1") -> list[str]:
    """What waits in the state."""
    return list(host.state.keys("conversation", conversation, "runner.consent.")[0])


def last_words(request: ModelRequest) -> str:
    return str(request.messages[-1])
