"""Input: a JSON list of `[method, arguments]`. Answer: the JSON list of what the proxy returned or raised.

Beside the proxy's own methods there are `ctx` (a part of the context), `stream` (all events of one streamed call) and
`say` (an answer of its own instead of the list). An argument `"$name"` stands for the value of that key in the reply
before it, `"$model"` for the first granted model, `"$event"` for the event's id. A text that is no JSON gets "heard".
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIException
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import PermissionDeniedError, RunnerAPIProxy
from pydantic import BaseModel


class DefaultRunner(Runner):
    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        steps = _steps(ctx.input.text or "")
        seen: list[Any] = []
        text: str | None = None if steps else "heard"
        for name, arguments in steps:
            if name == "say":
                text = str(arguments["text"]) * int(arguments.get("times", 1))
                continue
            seen.append(await _tried(self.get_run_api(ctx), ctx, name, _resolved(arguments, ctx, seen)))
        answer = text if text is not None else json.dumps(seen, ensure_ascii=False)
        yield RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=answer))
        yield RunnerResult.run_completed(ctx.run_id)


def _steps(text: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        return [(str(name), dict(arguments)) for name, arguments in json.loads(text)]
    except (ValueError, TypeError):
        return []


def _resolved(arguments: dict[str, Any], ctx: RunnerContext, seen: list[Any]) -> dict[str, Any]:
    own: dict[str, Any] = {"$model": ctx.resources.models[0].model_id, "$event": ctx.event.event_id}
    if seen and isinstance(seen[-1], dict):
        own |= {f"${key}": value for key, value in seen[-1].items()}
    return {key: own.get(value, value) if isinstance(value, str) else value for key, value in arguments.items()}


async def _tried(api: RunnerAPIProxy, ctx: RunnerContext, name: str, arguments: dict[str, Any]) -> Any:
    try:
        return _plain(await _asked(api, ctx, name, arguments))
    except AgentAPIException as error:
        return {"raised": "AgentAPIException", **_plain(error.error)}
    except (PermissionDeniedError, ValueError, TypeError, KeyError) as error:
        return {"raised": type(error).__name__, "message": str(error)}


async def _asked(api: RunnerAPIProxy, ctx: RunnerContext, name: str, arguments: dict[str, Any]) -> Any:
    if name == "ctx":
        return _plain(ctx)[arguments["part"]]
    if "messages" in arguments:
        arguments["messages"] = [Message.model_validate(one) for one in arguments["messages"]]
    if "funcs" in arguments:
        arguments["funcs"] = [LLMTool(human_desc="", func=_never, **one) for one in arguments["funcs"]]
    if name == "stream":
        return [_plain(event) async for event in api.invoke_llm_stream_events(**arguments)]
    return await getattr(api, name)(**arguments)


async def _never(**_parameters: Any) -> None:
    """The field is required but never crosses the wire."""


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, dict) else value
