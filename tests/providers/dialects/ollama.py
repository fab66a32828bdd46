"""Ollama's own interface: lines of JSON, arguments as objects, no ids, `tool_choice` unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from tests.providers.dialect import Dialect, Rule, pieces
from tests.providers.offered import parameter_nodes
from tests.providers.said import Called, Heard, Json, Said, Turn


def _arguments(heard: Heard) -> str | None:
    for message in heard.body["messages"]:
        for call in message.get("tool_calls") or ():
            if not isinstance(call["function"].get("arguments"), dict):
                return (
                    "json: cannot unmarshal string into Go struct field "
                    "ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
                )
    return None


def _contents(heard: Heard) -> str | None:
    if any(isinstance(message.get("content"), list) for message in heard.body["messages"]):
        return "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
    return None


def _schemas(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        if isinstance(node.value, bool) and len(node.path) > 1 and node.path[-2] == "properties":
            return (
                "json: cannot unmarshal bool into Go struct field "
                "ChatRequest.tools.function.parameters.properties of type api.ToolProperty"
            )
    return None


def _no_tools(heard: Heard) -> str | None:
    return f"registry.ollama.ai/library/{heard.model} does not support tools" if heard.tools else None


class Ollama(Dialect):
    name = "Ollama"
    base = ""
    content_type = "application/x-ndjson"
    done = ""
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("arguments_are_objects", "aliasrobotics/cai#76", _arguments),
        Rule("contents_are_text", "BerriAI/litellm#11273", _contents),
        Rule("properties_are_objects", "ollama/ollama, api/types.go, ToolProperty", _schemas),
    )

    def heard(self, path: str, body: Json) -> Heard:
        return Heard(
            model=str(body.get("model")),
            body=body,
            turns=tuple(_turn(message) for message in body["messages"]),
            tools=tuple(str(one["function"]["name"]) for one in body.get("tools") or ()),
            streamed=body.get("stream") is not False,
        )

    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        for piece in pieces(said.thoughts):
            yield _event(heard, {"role": "assistant", "content": "", "thinking": piece})
        for piece in pieces(said.text):
            yield _event(heard, {"role": "assistant", "content": piece})
        for call in said.calls:
            yield _event(heard, {"role": "assistant", "content": "", "tool_calls": [_call(call)]})
        yield {**_event(heard, {"role": "assistant", "content": ""}), **_end(said)}

    def whole(self, said: Said, heard: Heard) -> Json:
        message: Json = {"role": "assistant", "content": said.text}
        if said.thoughts:
            message["thinking"] = said.thoughts
        if said.calls:
            message["tool_calls"] = [_call(call) for call in said.calls]
        return {**_event(heard, message), **_end(said)}

    def error(self, status: int, words: str) -> Json:
        return {"error": words}

    def line(self, event: Json) -> str:
        return f"{json.dumps(event)}\n"


class OllamaWithoutTools(Ollama):
    """A model whose template knows no tools."""

    name = "Ollama without tools"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("the_model_has_no_tools", "ollama/ollama, server/routes.go, ChatHandler", _no_tools),
    )


def _event(heard: Heard, message: Json) -> Json:
    return {"model": heard.model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def _end(said: Said) -> Json:
    return {"done": True, "done_reason": said.finish or "stop", "prompt_eval_count": 10, "eval_count": 5}


def _call(call: Called) -> Json:
    return {"function": {"name": call.name, "arguments": call.read}}


def _turn(message: Json) -> Turn:
    made = [one["function"] for one in message.get("tool_calls") or ()]
    used = tuple(Called(str(one["name"]), one.get("arguments") or {}) for one in made)
    return Turn(str(message.get("role")), str(message.get("content") or ""), used)
