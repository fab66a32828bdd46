"""OpenAI itself: strict about names, lengths, pairs and the parameters that it knows."""

from __future__ import annotations

import re
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.offered import calls_answered, functions, parameter_nodes, results_follow_calls, types_of
from tests.providers.said import Heard, Json, Said

_WORDS = re.compile(r"\w+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOP_LEVEL = frozenset(
    _WORDS.findall(
        "model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p n stop "
        "max_tokens max_completion_tokens presence_penalty frequency_penalty logit_bias logprobs top_logprobs user "
        "seed metadata response_format reasoning_effort verbosity service_tier store modalities audio prediction "
        "functions function_call prompt_cache_key prompt_cache_retention safety_identifier web_search_options"
    )
)
_ALTERNATIVES = ("oneOf", "anyOf", "allOf", "enum", "not")


def _names(heard: Heard) -> str | None:
    for at, function in enumerate(functions(heard.body)):
        if not _NAME.fullmatch(str(function.get("name"))):
            return (
                f"Invalid 'tools[{at}].function.name': string does not match pattern. Expected a string that matches "
                "the pattern '^[a-zA-Z0-9_-]+$'."
            )
    return None


def _ids(heard: Heard) -> str | None:
    for at, turn in enumerate(heard.turns):
        for place, call in enumerate(turn.calls):
            if len(call.id) > 40:
                return (
                    f"Invalid 'messages[{at}].tool_calls[{place}].id': string too long. Expected a string with maximum "
                    f"length 40, but got a string with length {len(call.id)} instead."
                )
    return None


def _objects(heard: Heard) -> str | None:
    for name, node in parameter_nodes(heard.body):
        if not node.path and node.schema.get("type") != "object":
            kind = node.schema.get("type")
            told = f"schema must be a JSON Schema of 'type: \"object\"', got {kind!r}."
            return f"Invalid schema for function '{name}': {told}"
        if not node.path and any(key in node.schema for key in _ALTERNATIVES):
            return (
                f"Invalid schema for function '{name}': schema must have type 'object' and not have "
                "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
            )
    return None


def arrays_with_items(heard: Heard) -> str | None:
    for name, node in parameter_nodes(heard.body):
        if "array" in types_of(node.schema) and "items" not in node.schema:
            return f"Invalid schema for function '{name}': In context={node.path!r}, array schema missing items."
    return None


def _descriptions(heard: Heard) -> str | None:
    for at, function in enumerate(functions(heard.body)):
        length = len(str(function.get("description") or ""))
        if length > 1024:
            return (
                f"Invalid 'tools[{at}].function.description': string too long. Expected a string with maximum length "
                f"1024, but got a string with length {length} instead."
            )
    return None


def _tools(heard: Heard) -> str | None:
    if len(heard.tools) > 128:
        return f"Invalid 'tools': array too long. Expected an array with maximum length 128, got {len(heard.tools)}."
    return None


def _parameters(heard: Heard) -> str | None:
    unknown = sorted(heard.body.keys() - _TOP_LEVEL)
    return f"Unrecognized request argument supplied: {unknown[0]}" if unknown else None


def _contents(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        if message.get("content") is None and not message.get("tool_calls"):
            return f"Invalid value for 'content': expected a string, got null. (messages[{at}].content)"
    return None


class OpenAI(ChatCompletions):
    name = "OpenAI"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("known_parameters_only", "openai API reference, Create chat completion", _parameters),
        Rule("names_of_letters_digits_marks", "openai API reference, function.name", _names),
        Rule("ids_of_at_most_40", "agno-agi/agno#5382", _ids),
        Rule("descriptions_of_at_most_1024", "getsentry/sentry-mcp#106", _descriptions),
        Rule("at_most_128_tools", "vishalmysore/Tools4AI#16", _tools),
        Rule("schemas_are_objects", "openai guide, Function calling", _objects),
        Rule("arrays_have_items", "NousResearch/hermes-agent#77617", arrays_with_items),
        Rule("content_or_calls", "openai API reference, assistant message", _contents),
        calls_answered(
            "openai guide, Function calling",
            lambda ids: (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
            ),
        ),
        results_follow_calls(
            "openai guide, Function calling",
            lambda _id: (
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'."
            ),
        ),
    )


# Groq: fast, and strict about every field of a message.

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
