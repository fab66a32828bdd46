"""Kimi (Moonshot): ids that name the tool, thoughts back beside calls, a schema language of its own."""

from __future__ import annotations

from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.dialects.deepseek import thinks
from tests.providers.offered import orphans, parameter_nodes
from tests.providers.said import Called, Heard

_FLAVOUR = "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path '{}': {}>"
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


def _thoughts_back(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        if thinks(heard.body) and message.get("tool_calls") and message.get("reasoning_content") is None:
            return f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
    return None


def _contents(heard: Heard) -> str | None:
    for at, turn in enumerate(heard.turns):
        if turn.role in ("user", "assistant") and not turn.text and not turn.calls and not _has_parts(heard, at):
            return f"Invalid request: the message at position {at} with role '{turn.role}' must not be empty"
    return None


def _has_parts(heard: Heard, at: int) -> bool:
    """A picture without words is something, too."""
    content = heard.body["messages"][at].get("content")
    return isinstance(content, list) and bool(content)


def _known_results(heard: Heard) -> str | None:
    lone = orphans(heard)
    return f"Invalid request: tool_call_id {lone[0]} is not found" if lone else None


def _typed(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        told = {"type", "$ref", *_ALTERNATIVES} & node.schema.keys()
        if node.path and node.path[-1] != "additionalProperties" and isinstance(node.value, dict) and not told:
            return _FLAVOUR.format(node.place, "type is not defined")
    return None


def _alternatives_typed(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        if "anyOf" in node.schema and "type" in node.schema:
            words = "when using anyOf, type should be defined in anyOf items instead of the parent schema"
            return _FLAVOUR.format(node.place, words)
    return None


def _items_are_schemas(heard: Heard) -> str | None:
    for _, node in parameter_nodes(heard.body):
        if not isinstance(node.schema.get("items", {}), dict):
            return _FLAVOUR.format(node.place, "items must be an object")
    return None


def _no_forced_call(heard: Heard) -> str | None:
    if thinks(heard.body) and heard.body.get("tool_choice") not in (None, "auto", "none"):
        return "tool_choice 'required' is incompatible with thinking enabled"
    return None


class Kimi(ChatCompletions):
    name = "Kimi"
    habitual_thought = "Let me see."
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("thoughts_come_back_with_calls", "continuedev/continue#11600", _thoughts_back),
        Rule("no_message_is_empty", "platform.moonshot.ai, Chat API errors", _contents),
        Rule("results_have_their_calls", "platform.moonshot.ai, Tool use", _known_results),
        Rule("every_property_has_a_type", "MoonshotAI/kimi-cli#2030", _typed),
        Rule("no_type_beside_any_of", "MoonshotAI/kimi-code#2661", _alternatives_typed),
        Rule("items_are_one_schema", "vercel/ai#18921", _items_are_schemas),
        Rule("no_call_is_forced_while_thinking", "platform.moonshot.ai, Thinking models", _no_forced_call),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        """The tool's name, and a number that goes on over the whole conversation."""
        return f"functions.{call.name}:{len(heard.calls) + index}"
