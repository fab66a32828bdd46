"""MiMo (Xiaomi): thoughts back beside calls, and a text in every message."""

from __future__ import annotations

from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.dialects.deepseek import thinks
from tests.providers.said import Heard, Json


def _thoughts_back(heard: Heard) -> str | None:
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
        Rule("thoughts_come_back_with_calls", "chatboxai/chatbox#3716", _thoughts_back),
        Rule("results_are_text", "XiaomiMiMo/MiMo#44", _results_are_text),
    )

    def error(self, status: int, words: str) -> Json:
        return {"error": {"code": str(status), "message": "Param Incorrect", "param": words, "type": ""}}
