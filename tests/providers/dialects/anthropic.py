"""Anthropic's messages: blocks instead of messages of tools, and a strict reading of each."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers.dialect import Dialect, Rule, pieces
from tests.providers.offered import doubled_ids, nodes
from tests.providers.said import Called, Heard, Json, Said, Turn

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_USAGE = {"input_tokens": 10, "output_tokens": 5}


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]


def _of(message: Json, kind: str) -> list[Json]:
    return [block for block in _blocks(message) if block.get("type") == kind]


def _ids(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        for place, block in enumerate(_blocks(message)):
            if block.get("type") == "tool_use" and not _ID.fullmatch(str(block.get("id"))):
                return f"messages.{at}.content.{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    return None


def _unique(heard: Heard) -> str | None:
    return "messages: `tool_use` ids must be unique" if doubled_ids(heard) else None


def _answered(heard: Heard) -> str | None:
    messages = heard.body["messages"]
    for at, message in enumerate(messages):
        behind = messages[at + 1] if at + 1 < len(messages) else {"role": "user", "content": []}
        results = [block["tool_use_id"] for block in _of(behind, "tool_result")]
        missing = [block["id"] for block in _of(message, "tool_use") if block["id"] not in results]
        if missing:
            return (
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
    return None


def _expected(heard: Heard) -> str | None:
    before: Json = {"content": []}
    for at, message in enumerate(heard.body["messages"]):
        asked = [block["id"] for block in _of(before, "tool_use")]
        for block in _of(message, "tool_result"):
            if block["tool_use_id"] not in asked:
                id = block["tool_use_id"]
                return f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
        before = message
    return None


def _first(heard: Heard) -> str | None:
    messages = heard.body["messages"]
    if not messages:
        return "messages: at least one message is required"
    return None if messages[0]["role"] == "user" else 'messages: first message must use the "user" role'


def _texts(heard: Heard) -> str | None:
    for block in (block for message in heard.body["messages"] for block in _of(message, "text")):
        if not block.get("text"):
            return "messages: text content blocks must be non-empty"
        if not str(block["text"]).strip():
            return "messages: text content blocks must contain non-whitespace text"
    return None


def _tools_defined(heard: Heard) -> str | None:
    used = any(_of(message, kind) for message in heard.body["messages"] for kind in ("tool_use", "tool_result"))
    if used and not heard.body.get("tools"):
        return "Requests which have `tool_use` or `tool_result` blocks in their messages must define tools."
    return None


def _objects(heard: Heard) -> str | None:
    for at, tool in enumerate(heard.body.get("tools") or ()):
        if tool.get("input_schema", {}).get("type") != "object":
            return f"tools.{at}.custom.input_schema.type: Input should be 'object'"
    return None


def _no_alternatives(heard: Heard) -> str | None:
    for at, tool in enumerate(heard.body.get("tools") or ()):
        if {"oneOf", "allOf", "anyOf"} & tool.get("input_schema", {}).keys():
            return (
                f"tools.{at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            )
    return None


def _keys(heard: Heard) -> str | None:
    for at, tool in enumerate(heard.body.get("tools") or ()):
        for node in nodes(tool.get("input_schema")):
            if any(not _KEY.fullmatch(key) for key in node.schema.get("properties") or {}):
                return (
                    f"tools.{at}.custom.input_schema.properties: Property keys should match pattern "
                    "'^[a-zA-Z0-9_.-]{1,64}$'"
                )
    return None


def _names(heard: Heard) -> str | None:
    for at, name in enumerate(heard.tools):
        if not _NAME.fullmatch(name):
            return f"tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
    return "tools: Tool names must be unique." if len(set(heard.tools)) != len(heard.tools) else None


def _ends_well(heard: Heard) -> str | None:
    last = heard.body["messages"][-1] if heard.body["messages"] else {"role": "user"}
    text = _of(last, "text")[-1]["text"] if last["role"] == "assistant" and _of(last, "text") else ""
    return "messages: final assistant content cannot end with trailing whitespace" if text != text.rstrip() else None


def _thoughts_first(heard: Heard) -> str | None:
    """Where thinking is on, the turn that goes on begins with the thought it came from."""
    if (heard.body.get("thinking") or {}).get("type") not in ("enabled", "adaptive"):
        return None
    for at in range(len(heard.body["messages"]) - 1, -1, -1):
        message = heard.body["messages"][at]
        if message["role"] == "user" and not _of(message, "tool_result"):
            return None
        first = str(_blocks(message)[0].get("type"))
        if _of(message, "tool_use") and first not in ("thinking", "redacted_thinking"):
            return f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`."
    return None


def _signatures(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        for place, block in enumerate(_blocks(message)):
            if block.get("type") == "thinking" and not str(block.get("signature", "")).startswith("sig-"):
                return f"messages.{at}.content.{place}: Invalid `signature` in `thinking` block"
    return None


class Anthropic(Dialect):
    name = "Anthropic"
    base = ""
    done = ""
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("the_first_message_is_the_users", "docs.anthropic.com, Messages", _first),
        Rule("ids_of_letters_digits_marks", "docs.anthropic.com, Tool use", _ids),
        Rule("ids_are_unique", "anthropics/claude-code#20527", _unique),
        Rule("calls_answered_in_the_next_message", "lidge-jun/opencodex#620", _answered),
        Rule("results_follow_calls", "docs.anthropic.com, Tool use", _expected),
        Rule("no_empty_text", "docs.anthropic.com, Errors", _texts),
        Rule("no_white_space_at_the_end", "docs.anthropic.com, Prefill", _ends_well),
        Rule("tools_are_defined_where_they_were_used", "docs.anthropic.com, Tool use", _tools_defined),
        Rule("tool_names", "docs.anthropic.com, Tool use", _names),
        Rule("schemas_are_objects", "moonrepo/moon#2396", _objects),
        Rule("no_alternatives_at_the_top", "anthropics/claude-code#27337", _no_alternatives),
        Rule("keys_of_letters_digits_marks", "ComposioHQ/composio#3500", _keys),
        Rule("thoughts_first_while_thinking", "docs.anthropic.com, Extended thinking", _thoughts_first),
        Rule("thoughts_are_signed", "docs.anthropic.com, Extended thinking", _signatures),
    )

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def heard(self, path: str, body: Json) -> Heard:
        return Heard(
            model=str(body.get("model")),
            body=body,
            turns=(*_system(body.get("system")), *(turn for one in body["messages"] for turn in _turns(one))),
            tools=tuple(str(tool["name"]) for tool in body.get("tools") or ()),
            streamed=bool(body.get("stream")),
        )

    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        blocks = list(self._said_blocks(said))
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": heard.model, "content": []}
        yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": _USAGE}}
        for index, block in enumerate(blocks):
            begun, deltas = _streamed(block)
            yield {"type": "content_block_start", "index": index, "content_block": begun}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = {"stop_reason": _stop(said), "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}
        yield {"type": "message_stop"}

    def whole(self, said: Said, heard: Heard) -> Json:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": heard.model}
        content = list(self._said_blocks(said))
        return {**message, "content": content, "stop_reason": _stop(said), "usage": _USAGE}

    def error(self, status: int, words: str) -> Json:
        kind = "overloaded_error" if status >= 500 else "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": words}}

    def line(self, event: Json) -> str:
        return f"event: {event['type']}\n{super().line(event)}"

    def _said_blocks(self, said: Said) -> Iterator[Json]:
        if said.thoughts:
            yield {"type": "thinking", "thinking": said.thoughts, "signature": f"sig-{next(self._numbers)}"}
        if said.text:
            yield {"type": "text", "text": said.text}
        for call in said.calls:
            id = call.id or f"toolu_01{next(self._numbers):022d}"
            yield {"type": "tool_use", "id": id, "name": call.name, "input": call.read}


def _stop(said: Said) -> str:
    return said.finish or ("tool_use" if said.calls else "end_turn")


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    """A block as it begins, and what comes of it piece by piece."""
    match block["type"]:
        case "thinking":
            thought: list[Json] = [{"type": "thinking_delta", "thinking": one} for one in pieces(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thought, signed]
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": one} for one in pieces(block["text"])]
        case _:
            written = pieces(json.dumps(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": one} for one in written]


def _system(system: Any) -> list[Turn]:
    if isinstance(system, list):
        return [Turn("system", "\n".join(str(part.get("text")) for part in system))]
    return [Turn("system", str(system))] if system else []


def _turns(message: Json) -> Iterator[Turn]:
    """A message as turns: each result of a tool is one of its own."""
    for block in _of(message, "tool_result"):
        yield Turn("tool", _result_text(block.get("content")), answers=str(block["tool_use_id"]))
    text = "\n".join(str(block.get("text")) for block in _of(message, "text"))
    used = tuple(Called(str(one["name"]), one.get("input") or {}, str(one["id"])) for one in _of(message, "tool_use"))
    if text or used or not _of(message, "tool_result"):
        yield Turn(str(message["role"]), text, used)


def _result_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content)
    return str(content or "")
