"""The least a Runner can do: prompt, history, one stream, one completed message, and a plain tool loop.

The yardstick the real Runner is measured against: it counts nothing, looks for no steering and no cancel, and keeps no
record. What it cannot do, a test must not expect from the Host either.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import FunctionCall, Message, MessageChunk, ToolCall
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy


@dataclass
class _Turn:
    """One model reply as it grows."""

    text: str = ""
    calls: dict[str, ToolCall] = field(default_factory=dict)

    def add(self, chunk: MessageChunk) -> None:
        if isinstance(chunk.content, str):
            self.text += chunk.content
        for call in chunk.tool_calls or ():
            known = self.calls.get(call.id)
            if known is None:
                self.calls[call.id] = call.model_copy(deep=True)
            else:
                known.function.arguments += call.function.arguments

    def message(self, round_number: int) -> Message:
        """The reply to send back, its call ids made unique over rounds."""
        calls = [
            ToolCall(id=f"r{round_number}_{call.id}", type="function", function=_function(call))
            for call in self.calls.values()
        ]
        return Message(role="assistant", content=self.text or None, tool_calls=calls or None)


def _function(call: ToolCall) -> FunctionCall:
    return FunctionCall(name=call.function.name, arguments=call.function.arguments or "{}")


class PassThroughRunner(Runner):
    """A Runner of the fewest calls: 2 + one per model turn + one per tool call.

    `deltas` False: it shows nothing before its answer, which is the least that reading a stream can cost.
    """

    def __init__(self, *, deltas: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the SDK leaves it without types
        self._deltas = deltas

    async def run(  # type: ignore[override]  # the base is a coroutine, `invoke` takes either
        self, ctx: RunnerContext
    ) -> AsyncGenerator[RunnerResult, None]:
        api = self.get_run_api(ctx)
        prompt, history = await asyncio.gather(api.get_prompt(), api.history_page(limit=50))
        rows = [Message.model_validate(row.content_json) for row in reversed(history.items) if row.content_json]
        messages = [*(Message.model_validate(row) for row in prompt), *rows]
        shown, sequence = "", 0
        for number in itertools.count():
            turn = _Turn()
            async for chunk in api.invoke_llm_stream(_model(ctx), messages, _tools(ctx)):
                turn.add(chunk)
                if chunk.content and self._deltas:
                    sequence += 1
                    yield RunnerResult.message_delta(ctx.run_id, _snapshot(shown + turn.text, sequence))
            shown += turn.text
            if not turn.calls:
                break
            messages.append(turn.message(number))
            messages += await _call_all(api, messages[-1])
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=shown))
        yield RunnerResult.run_completed(ctx.run_id)


def _snapshot(text: str, sequence: int) -> MessageChunk:
    return MessageChunk(role="assistant", content=text, all_content=text, msg_sequence=sequence)


def _model(ctx: RunnerContext) -> str:
    return ctx.resources.models[0].model_id


def _tools(ctx: RunnerContext) -> list[LLMTool]:
    return [
        LLMTool(
            name=tool.tool_name,
            human_desc=tool.description or "",
            description=tool.description or "",
            parameters=tool.parameters or {"type": "object", "properties": {}},
            func=_never,
        )
        for tool in ctx.resources.tools
    ]


async def _never(**_parameters: Any) -> None:
    """The field is required but never crosses the wire."""


async def _call_all(api: RunnerAPIProxy, message: Message) -> list[Message]:
    async def one(call: ToolCall) -> Message:
        result: Any = await api.call_tool(call.function.name, json.loads(call.function.arguments))
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return Message(role="tool", tool_call_id=call.id, name=call.function.name, content=text)

    return list(await asyncio.gather(*map(one, message.tool_calls or ())))
