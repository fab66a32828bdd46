"""The requester's part: what reaches a provider, and how its answer comes back.

Imitates langbot/pkg/provider/modelmgr/requesters/litellmchat.py (`_convert_messages`, `invoke_llm_stream`,
`_normalize_stream_tool_calls`, `_process_thinking_content`) and the checks of modelmgr/reasoning.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk

from . import tokens
from .script import Json, Model, ModelRequest, Reply, cut
from .texts import Language, Reason, RequesterError, model_error

_REPLAYED_REASONING = frozenset({"deepseek", "kimi", "qwen", "doubao", "mimo", "volcengine"})
_REASONING_ARGS = ("reasoning", "reasoning_effort", "thinking", "enable_thinking")
_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)


def convert(messages: list[Json], family: str = "") -> list[Json]:
    """Messages of the plugin as the provider gets them (litellmchat.py:_convert_messages)."""
    return [_convert_message(Message.model_validate(one).model_dump(exclude_none=True), family) for one in messages]


def _convert_message(message: Json, family: str) -> Json:
    fields = message.get("provider_specific_fields")
    if isinstance(fields, dict):
        fields.pop("finish_reason", None)
        if family and message["role"] == "assistant":
            _replay_reasoning(message, fields, family)
        if not fields:
            message.pop("provider_specific_fields", None)
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [part for part in map(_convert_part, content) if part is not None]
    return message


def _replay_reasoning(message: Json, fields: Json, family: str) -> None:
    reasoning, blocks = fields.pop("reasoning_content", None), fields.pop("thinking_blocks", None)
    if (reasoning or blocks) and isinstance(message.get("content"), str):
        message["content"] = _THINK.sub("", message["content"]).strip()
    if family == "anthropic" and blocks:
        message["thinking_blocks"] = blocks
    elif family in _REPLAYED_REASONING and isinstance(reasoning, str):
        message["reasoning_content"] = reasoning


def _convert_part(part: Json) -> Json | None:
    if part.get("type") in ("file_base64", "file_url"):
        return None
    if part.get("type") != "image_base64":
        return part
    payload = part.get("image_base64") or (part.get("image_url") or {}).get("url")
    return {"type": "image_url", "image_url": {"url": payload}} if payload else None


def check_level(model: Model, level: str | None, extra_args: Json) -> None:
    """Raises ValueError as modelmgr/reasoning.py:validate_reasoning_config and validate_reasoning_capabilities do."""
    if level in (None, "provider_default"):
        return
    if "reasoning" not in model.abilities:
        raise ValueError("The reasoning ability must be enabled before selecting a reasoning level")
    conflicts = [key for key in _REASONING_ARGS if key in {**model.extra_args, **extra_args}]
    if conflicts:
        raise ValueError("reasoning_config conflicts with advanced parameters: " + ", ".join(conflicts))
    if level not in model.levels:
        raise ValueError(f'Reasoning level "{level}" is not supported by model {model.id}. Available levels: none')


def request_of(model: Model, data: Json, *, stream: bool, thinking_removed: bool) -> ModelRequest:
    """The request that reaches the provider from the data of an INVOKE_LLM(_STREAM) action
    (plugin/handler.py:invoke_llm): tools are left out for a model without `func_call`."""
    extra_args = {**model.extra_args, **data.get("extra_args", {})}
    check_level(model, data.get("reasoning_level"), data.get("extra_args", {}))
    offered = data.get("funcs", [])
    funcs = offered if "func_call" in model.abilities else []
    messages = convert(data["messages"], model.family)
    return ModelRequest(
        model=model.id,
        stream=stream,
        messages=messages,
        funcs=funcs,
        offered=offered,
        extra_args=extra_args,
        level=data.get("reasoning_level"),
        remove_think=data.get("remove_think"),
        thinking_removed=thinking_removed,
        tokens=tokens.count(messages, funcs),
    )


async def ask(model: Model, request: ModelRequest, language: Language) -> Reply:
    """The model's reply. Raises `RequesterError` where the provider refuses before the first event."""
    model.requests.append(request)
    if model.window is not None and request.tokens > model.window:
        raise RequesterError(model_error(Reason.CONTEXT_LENGTH, language))
    reply = await model.answer(request)
    await asyncio.sleep(reply.delay)
    if reply.error is not None and not (request.stream and reply.error_after):
        raise RequesterError(model_error(reply.error, language))
    return reply


def usage_of(reply: Reply, request: ModelRequest) -> Json | None:
    if reply.usage is not None:
        return reply.usage or None
    completion = tokens.count_text(reply.full_text + reply.reasoning) + sum(
        tokens.count_text(call.text) + 4 for call in reply.tool_calls
    )
    return {
        "prompt_tokens": request.tokens,
        "completion_tokens": completion,
        "total_tokens": request.tokens + completion,
    }


def whole_message(reply: Reply, request: ModelRequest) -> Json:
    """The answer of a call that does not stream (litellmchat.py:_process_thinking_content)."""
    text = reply.full_text + reply.late_text
    if request.thinking_removed:
        text = _THINK.sub("", text).strip()
    elif reply.reasoning:
        text = f"<think>\n{reply.reasoning}\n</think>\n{text}".strip()
    fields = _fields(reply)
    calls = [_call(reply, index, call.text) for index, call in enumerate(reply.tool_calls)]
    message = {"role": "assistant", "content": text, "tool_calls": calls or None, "provider_specific_fields": fields}
    return Message.model_validate(message).model_dump()


def _fields(reply: Reply) -> Json | None:
    fields = dict(reply.provider_specific_fields or {})
    if reply.reasoning:
        fields["reasoning_content"] = reply.reasoning
    if reply.thinking_blocks:
        fields["thinking_blocks"] = list(reply.thinking_blocks)
    return fields or None


def _call(reply: Reply, index: int, arguments: str) -> Json:
    call = reply.tool_calls[index]
    made: Json = {
        "id": call.id if call.id is not None else f"call_{index}",
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
    if call.provider_specific_fields:
        made["provider_specific_fields"] = call.provider_specific_fields
    return made


async def stream(reply: Reply, request: ModelRequest, language: Language) -> AsyncIterator[Json]:
    """The chunks of a streamed answer, shaped as INVOKE_LLM_STREAM sends them. Raises `RequesterError` midway."""
    if reply.events is not None:
        async for event in _as_they_come(reply.events):
            yield event
        return
    for index, chunk in enumerate(_chunks(reply, removed=request.thinking_removed)):
        if index and reply.chunk_delay:
            await asyncio.sleep(reply.chunk_delay)
        if reply.error is not None and index >= reply.error_after:
            raise RequesterError(model_error(reply.error, language))
        yield {"chunk": chunk.model_dump()}
    if reply.error is not None:
        raise RequesterError(model_error(reply.error, language))


async def _as_they_come(events: Iterable[Json] | AsyncIterator[Json]) -> AsyncIterator[Json]:
    if isinstance(events, AsyncIterator):
        async for event in events:
            yield event
    else:
        for event in events:
            yield event


def _chunks(reply: Reply, *, removed: bool) -> Iterator[MessageChunk]:
    yield from _reasoning_chunks(reply, removed=removed)
    closing = "\n</think>\n" if reply.reasoning and not removed else ""
    pieces = _ThinkFilter().run(reply.pieces) if removed else reply.pieces
    for piece in pieces:
        yield _chunk(closing + piece)
        closing = ""
    for call in _fragments(reply):
        yield _chunk(None, tool_calls=[call])
    fields = {**(reply.provider_specific_fields or {}), "finish_reason": reply.stop}
    yield _chunk(closing or None, is_final=True, provider_specific_fields=fields)
    if reply.late_text:
        yield _chunk(reply.late_text, is_final=True)


def _reasoning_chunks(reply: Reply, *, removed: bool) -> Iterator[MessageChunk]:
    opening = "" if removed else "<think>\n"
    for piece in cut(reply.reasoning, 3):
        shown = None if removed else opening + piece
        yield _chunk(shown, provider_specific_fields={"reasoning_content": piece})
        opening = ""
    if reply.thinking_blocks:
        yield _chunk(None, provider_specific_fields={"thinking_blocks": list(reply.thinking_blocks)})


def _fragments(reply: Reply) -> Iterator[Json]:
    parts = [
        [_call(reply, index, piece) for piece in cut(call.text, call.pieces) or [""]]
        for index, call in enumerate(reply.tool_calls)
    ]
    if not reply.interleaved:
        for own in parts:
            yield from own
        return
    for turn in range(max(map(len, parts), default=0)):
        yield from (own[turn] for own in parts if turn < len(own))


def _chunk(content: str | None, **more: Any) -> MessageChunk:
    return MessageChunk.model_validate({"role": "assistant", "content": content or None, **more})


class _ThinkFilter:
    """Takes `<think>…</think>` out of a stream whose tags may be split over pieces."""

    _OPEN, _CLOSE = "<think>", "</think>"

    def run(self, pieces: list[str]) -> Iterator[str]:
        held, inside = "", False
        for piece in pieces:
            held += piece
            shown = ""
            while held:
                tag = self._CLOSE if inside else self._OPEN
                before, found, rest = held.partition(tag)
                keep = "" if found else self._possible_start(before, tag)
                visible = before[: len(before) - len(keep)]
                shown += "" if inside else visible
                if not found:
                    held = keep
                    break
                held, inside = rest.lstrip() if inside else rest, not inside
            if shown:
                yield shown
        if held and not inside:
            yield held

    @staticmethod
    def _possible_start(text: str, tag: str) -> str:
        sizes = range(min(len(tag) - 1, len(text)), 0, -1)
        return next((text[-size:] for size in sizes if tag.startswith(text[-size:])), "")
