"""Qwen by DashScope's compatible mode, and by ModelScope, which serves it the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule, fragment, pieces
from tests.providers.offered import calls_answered, results_follow_calls
from tests.providers.said import Called, Heard, Json

_PREFIX = "<400> InternalError.Algo.InvalidParameter: "
_OPEN_WEIGHTS = re.compile(r"qwen3-\d+b", re.IGNORECASE)


def _thinks(heard: Heard) -> bool:
    """The open models think unless told not to, the others only when asked."""
    wished = heard.body.get("enable_thinking")
    return bool(_OPEN_WEIGHTS.search(heard.model)) if wished is None else bool(wished)


def _streamed_thoughts(heard: Heard) -> str | None:
    if _thinks(heard) and not heard.streamed:
        return "parameter.enable_thinking must be set to false for non-streaming calls"
    return None


def _no_forced_call(heard: Heard) -> str | None:
    if _thinks(heard) and heard.body.get("tool_choice") not in (None, "auto", "none"):
        return f"{_PREFIX}The tool_choice parameter does not support being set to required or object in thinking mode"
    return None


def _content_is_there(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        if "content" not in message:
            return f"Input error. Field required: input.messages.{at}.content"
    return None


class Qwen(ChatCompletions):
    name = "Qwen"
    rules: ClassVar[tuple[Rule, ...]] = (
        calls_answered(
            "help.aliyun.com, Function Calling",
            lambda _ids: (
                f'{_PREFIX}An assistant message with "tool_calls" must be followed by tool messages responding to each '
                '"tool_call_id".'
            ),
        ),
        results_follow_calls(
            "help.aliyun.com, Function Calling",
            lambda _id: (
                f'{_PREFIX}messages with role "tool" must be a response to a preceeding message with "tool_calls".'
            ),
        ),
        Rule("thinking_only_in_streams", "langchain4j/langchain4j#3974", _streamed_thoughts),
        Rule("no_call_is_forced_while_thinking", "QwenLM/qwen-code#7659", _no_forced_call),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"call_{next(self._numbers):022x}"

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        """Every fragment has an id, empty behind the first; the name comes once."""
        yield fragment(index, call.id, call.name, "")
        for piece in pieces(call.written):
            yield fragment(index, "", None, piece)

    def error(self, status: int, words: str) -> Json:
        error = {"message": words, "type": "invalid_request_error", "param": None, "code": "invalid_parameter_error"}
        return {"error": error, "request_id": "5bf78562"}


class QwenGateway(Qwen):
    """DashScope as companies put it behind a gateway of theirs: no message without the field `content`."""

    name = "Qwen behind a gateway"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("content_is_there", "agentscope-ai/agentscope-java#1270", _content_is_there),
        *Qwen.rules,
    )
