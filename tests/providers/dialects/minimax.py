"""MiniMax: results must find their call, arguments must be JSON, nothing may be empty; thoughts stand in the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers.dialect import ChatCompletions, Rule, chunk, pieces
from tests.providers.offered import doubled_ids, functions, orphans, unanswered
from tests.providers.said import Called, Heard, Json, Said


def _known_results(heard: Heard) -> str | None:
    lone = orphans(heard)
    return f"invalid params, tool result's tool id({lone[0]}) not found (2013)" if lone else None


def _answered(heard: Heard) -> str | None:
    return "invalid params, tool call result does not follow tool call (2013)" if unanswered(heard) else None


def _ids(heard: Heard) -> str | None:
    wrong = doubled_ids(heard) or [id for id in heard.call_ids if not id]
    return "invalid params, tool call id is invalid (2013)" if wrong else None


def _arguments(heard: Heard) -> str | None:
    for call in heard.calls:
        if not isinstance(_json(call.written), dict):
            return f"invalid params, invalid function arguments json string, tool_call_id: {call.id} (2013)"
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _parameters(heard: Heard) -> str | None:
    empty = [one for one in functions(heard.body) if not one.get("parameters")]
    return "invalid params, function parameters is empty (2013)" if empty else None


def _contents(heard: Heard) -> str | None:
    for message in heard.body["messages"]:
        if not message.get("content") and not message.get("tool_calls"):
            return "invalid params, chat content is empty (2013)"
    return None


class MiniMax(ChatCompletions):
    name = "MiniMax"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("results_have_their_calls", "MiniMax-AI/MiniMax-M2#76", _known_results),
        Rule("calls_answered_at_once", "anomalyco/opencode#32614", _answered),
        Rule("ids_are_unique", "Kilo-Org/kilocode#3967", _ids),
        Rule("arguments_are_objects", "HKUDS/nanobot#2373", _arguments),
        Rule("tools_have_parameters", "QwenLM/qwen-code#11905", _parameters),
        Rule("content_or_calls", "platform.minimaxi.com, error 2013", _contents),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"call_function_{next(self._numbers):012d}_{index + 1}"

    def thinking(self, said: Said) -> Iterator[Json]:
        """In the text, as the model writes it, and once more with its parts told apart."""
        if not said.thoughts:
            return
        details = [{"type": "reasoning.text", "id": "r1", "format": "MiniMax-response-v1", "text": said.thoughts}]
        for piece in pieces(f"<think>\n{said.thoughts}\n</think>\n\n"):
            yield chunk({"content": piece})
        yield chunk({"reasoning_details": details})

    def error(self, status: int, words: str) -> Json:
        error = {"type": "bad_request_error", "message": words, "http_code": str(status)}
        return {"type": "error", "error": error}
