"""llama.cpp's server: the model's template raises for roles out of order, and each schema becomes a grammar."""

from __future__ import annotations

import json
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.offered import neighbours, parameter_nodes, types_of
from tests.providers.said import Called, Heard, Json

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_TOLD = frozenset({"properties", "additionalProperties", "items", "prefixItems", "enum", "const", "pattern", "$ref"})
_ALTERNATIVES = frozenset({"anyOf", "oneOf", "allOf"})
_MOST_REPETITIONS = 2000


def _roles(heard: Heard) -> str | None:
    for before, turn in neighbours(heard):
        if before.role == turn.role != "tool":
            return (
                "Jinja Exception: After the optional system message, conversation roles must alternate user and "
                "assistant roles except for tool calls and results."
            )
    return None


def _convertible(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        told = _TOLD | _ALTERNATIVES
        strange = node.value != {} and not node.schema.keys() & told and not set(types_of(node.schema)) & _TYPES
        if strange and not (node.path and node.path[-1] == "additionalProperties" and isinstance(node.value, bool)):
            return f"JSON schema conversion failed:\nUnrecognized schema: {json.dumps(node.value)}"
    return None


def _patterns(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        pattern = node.schema.get("pattern")
        if isinstance(pattern, str) and not (pattern.startswith("^") and pattern.endswith("$")):
            return "JSON schema conversion failed:\nPattern must start with '^' and end with '$'"
    return None


def _repetitions(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        limits = [node.schema.get(key) for key in ("maxLength", "minLength", "maxItems", "minItems")]
        if any(isinstance(limit, int) and limit > _MOST_REPETITIONS for limit in limits):
            return "Failed to initialize samplers: failed to parse grammar"
    return None


class LlamaCpp(ChatCompletions):
    name = "llama.cpp"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("roles_alternate", "ggml-org/llama.cpp#19851", _roles, status=500),
        Rule("schemas_become_a_grammar", "skye-harris/hass_local_openai_llm#13", _convertible),
        Rule("patterns_are_anchored", "ggml-org/llama.cpp, json-schema-to-grammar", _patterns),
        Rule("few_repetitions", "flagdizero/jenny-android-ai-agent#2", _repetitions),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"{next(self._numbers):032d}"

    def error(self, status: int, words: str) -> Json:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"code": status, "message": words, "type": kind}}
