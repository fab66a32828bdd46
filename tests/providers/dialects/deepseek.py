"""DeepSeek and MiMo: a thinking model gets its thoughts back where it called tools; DeepSeek's first refuses them."""

from __future__ import annotations

from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.offered import calls_answered, neighbours, results_follow_calls
from tests.providers.said import Called, Heard, Json

# DeepSeek: a thinking model gets its thoughts back where it called tools; the first one refuses them.

_PAIRS = (
    calls_answered(
        "BigPizzaV3/CodexPlusPlus#329",
        lambda _ids: (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. (insufficient tool messages following tool_calls message)"
        ),
    ),
    results_follow_calls(
        "api-docs.deepseek.com, Function Calling",
        lambda _id: "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    ),
)


def thinks(body: Json) -> bool:
    """Thinking is on unless the request turns it off."""
    return (body.get("thinking") or {}).get("type") != "disabled"


def _thoughts_back(heard: Heard) -> str | None:
    messages = heard.body["messages"] if thinks(heard.body) else []
    if any(one.get("tool_calls") and not one.get("reasoning_content") for one in messages):
        return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


def _no_forced_call(heard: Heard) -> str | None:
    if thinks(heard.body) and heard.body.get("tool_choice") not in (None, "auto", "none"):
        return "deepseek-reasoner does not support this tool_choice"
    return None


def _no_thoughts(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        if "reasoning_content" in message:
            return f"messages[{at}].reasoning_content is not supported in the input messages"
    return None


def _turn_by_turn(heard: Heard) -> str | None:
    for before, turn in neighbours(heard):
        if before.role == turn.role != "tool":
            return "deepseek-reasoner does not support successive user or assistant messages"
    return None


class DeepSeek(ChatCompletions):
    """Version 4, which thinks unless told not to."""

    name = "DeepSeek"
    habitual_thought = "Let me see."
    rules: ClassVar[tuple[Rule, ...]] = (
        *_PAIRS,
        Rule("thoughts_come_back_with_calls", "api-docs.deepseek.com, Thinking Mode", _thoughts_back),
        Rule("no_call_is_forced_while_thinking", "cloudwego/eino#994", _no_forced_call),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"call_{index:02d}_{next(self._numbers):020d}"


class DeepSeekR1(ChatCompletions):
    """The first reasoner: it has no tools, refuses its own thoughts, and wants turns that alternate."""

    name = "DeepSeek R1"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("no_thoughts_come_back", "api-docs.deepseek.com, Reasoning Model", _no_thoughts),
        Rule("turns_alternate", "deepseek-ai/DeepSeek-R1#21", _turn_by_turn),
    )


# MiMo (Xiaomi): thoughts back beside calls, and a text in every message.


def _thoughts_beside_calls(heard: Heard) -> str | None:
    messages = heard.body["messages"] if thinks(heard.body) else []
    if any(one.get("tool_calls") and not one.get("reasoning_content") for one in messages):
        return "The reasoning_content in the thinking mode must be passed back to the API."
    return None


def _results_are_text(heard: Heard) -> str | None:
    for message in heard.body["messages"]:
        if message.get("role") == "tool" and not isinstance(message.get("content"), str):
            return "`text` is not set"
    return None


class MiMo(ChatCompletions):
    name = "MiMo"
    habitual_thought = "Let me see."
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("thoughts_come_back_with_calls", "chatboxai/chatbox#3716", _thoughts_beside_calls),
        Rule("results_are_text", "XiaomiMiMo/MiMo#44", _results_are_text),
    )

    def error(self, status: int, words: str) -> Json:
        return {"error": {"code": str(status), "message": "Param Incorrect", "param": words, "type": ""}}
