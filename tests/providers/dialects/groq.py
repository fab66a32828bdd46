"""Groq: fast, and strict about every field of a message."""

from __future__ import annotations

from typing import ClassVar

from tests.providers.chat_completions import ChatCompletions
from tests.providers.dialect import Rule
from tests.providers.dialects.openai import OpenAI
from tests.providers.said import Heard, Json, Said

_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "reasoning"})


def _fields(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        for key in sorted(message.keys() - _FIELDS):
            role = message["role"]
            return (
                f"'messages.{at}' : for 'role:{role}' the following must be satisfied[('messages.{at}' : property "
                f"'{key}' is unsupported)]"
            )
    return None


class Groq(ChatCompletions):
    name = "Groq"
    base = "/openai/v1"
    thoughts_field = "reasoning"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("known_fields_only", "janhq/jan#8136", _fields),
        *[rule for rule in OpenAI.rules if rule.name in ("schemas_are_objects", "calls_answered_at_once")],
    )

    def whole(self, said: Said, heard: Heard) -> Json:
        """LiteLLM reads the tier of every reply and fails where there is none."""
        return {**super().whole(said, heard), "service_tier": "on_demand"}
