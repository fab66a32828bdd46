"""One legal request for each provider, and what makes it break each rule."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.providers.dialect import Dialect
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.deepseek import DeepSeek, DeepSeekR1, MiMo
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.kimi import Kimi
from tests.providers.dialects.mistral import VLLMWithoutTools
from tests.providers.dialects.ollama import Ollama, OllamaWithoutTools
from tests.providers.dialects.qwen import QwenGateway
from tests.providers.said import Json

# One legal request for each provider: a round of tools, its answer, and a new message.

ID = "abcdefgh1"
"""An id that all providers take."""

_SCHEMA: Json = {"type": "object", "properties": {"q": {"type": "string"}}}
_CHAT: Json = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Where is tea?"},
        {
            "role": "assistant",
            "tool_calls": [{"id": ID, "type": "function", "function": {"name": "find", "arguments": '{"q": "tea"}'}}],
        },
        {"role": "tool", "tool_call_id": ID, "name": "find", "content": "page 7"},
        {"role": "assistant", "content": "On page 7."},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"type": "function", "function": {"name": "find", "description": "Finds", "parameters": _SCHEMA}}],
    "tool_choice": "auto",
    "stream": True,
}
_ANTHROPIC: Json = {
    "model": "m",
    "max_tokens": 100,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Where is tea?"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": ID, "name": "find", "input": {"q": "tea"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ID, "content": "page 7"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "On page 7."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ],
    "tools": [{"name": "find", "input_schema": _SCHEMA}],
    "stream": True,
}
_GEMINI: Json = {
    "contents": [
        {"role": "user", "parts": [{"text": "Where is tea?"}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "find", "args": {"q": "tea"}}, "thoughtSignature": "c2lnbmF0dXJl1"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"content": "page 7"}}}]},
        {"role": "model", "parts": [{"text": "On page 7."}]},
        {"role": "user", "parts": [{"text": "Thanks."}]},
    ],
    "tools": [{"function_declarations": [{"name": "find", "parameters": _SCHEMA}]}],
}


def legal(dialect: Dialect) -> tuple[str, Json]:
    """The path and body of a request that this provider takes; the body is the caller's to change."""
    match dialect:
        case Anthropic():
            return "/v1/messages", copy.deepcopy(_ANTHROPIC)
        case Gemini():
            return "/models/gemini-3-pro-preview:streamGenerateContent", copy.deepcopy(_GEMINI)
        case _:
            return "/v1/chat/completions", _chat(dialect)


def _chat(dialect: Dialect) -> Json:
    body = copy.deepcopy(_CHAT)
    asked = body["messages"][2]
    match dialect:
        case DeepSeek() | Kimi() | MiMo():
            asked["reasoning_content"] = "They want tea."
        case QwenGateway():
            asked["content"] = ""
        case Ollama():
            asked["tool_calls"][0]["function"]["arguments"] = {"q": "tea"}
        case DeepSeekR1():
            del body["messages"][2:4]
            _disarm(body)
        case VLLMWithoutTools():
            _disarm(body)
    if isinstance(dialect, OllamaWithoutTools):
        _disarm(body)
    return body


def _disarm(body: Json) -> None:
    del body["tools"], body["tool_choice"]


# For each rule of each provider, what makes a legal request break it.

Break = Callable[[Json], Any]
"""Changes a legal request in place."""


def _schema(body: Json) -> Json:
    """The schema of the one tool, in whatever form."""
    tool: Json = body["tools"][0]
    holder: Json = tool["function_declarations"][0] if "function_declarations" in tool else tool.get("function", tool)
    found: Json = holder["input_schema" if "input_schema" in holder else "parameters"]
    return found


def _with(**properties: Any) -> Break:
    """The tool asks for these, too."""
    return lambda body: _schema(body)["properties"].update(properties)


def _set(place: int, **values: Any) -> Break:
    """A message with these values."""
    return lambda body: body["messages"][place].update(values)


def _function(**values: Any) -> Break:
    return lambda body: body["tools"][0]["function"].update(values)


def _without(place: int, key: str) -> Break:
    return lambda body: body["messages"][place].pop(key)


def _ids(id: str) -> Break:
    def broken(body: Json) -> None:
        body["messages"][2]["tool_calls"][0]["id"] = body["messages"][3]["tool_call_id"] = id

    return broken


def _call_without_result(body: Json) -> None:
    call = {**body["messages"][2]["tool_calls"][0], "id": "abcdefgh2"}
    body["messages"][2]["tool_calls"].append(call)


def _result_without_call(body: Json) -> None:
    body["messages"].insert(4, {**body["messages"][3], "tool_call_id": "abcdefgh9"})


def _same_id_twice(body: Json) -> None:
    body["messages"][2]["tool_calls"] *= 2


def _arguments(text: str) -> Break:
    return lambda body: body["messages"][2]["tool_calls"][0]["function"].update(arguments=text)


def _many_tools(body: Json) -> None:
    named = [{"name": f"t{at}", "parameters": {"type": "object"}} for at in range(129)]
    body["tools"] = [{"type": "function", "function": one} for one in named]


def _cut(messages: list[Json]) -> list[Json]:
    """The round is the newest that was said."""
    del messages[3:]
    return messages


def _user_again(body: Json) -> None:
    body["messages"].insert(1, {"role": "user", "content": "Hello?"})


CHAT: dict[str, Break] = {
    "known_parameters_only": lambda body: body.update(guided_json={}),
    "names_of_letters_digits_marks": _function(name="find it"),
    "ids_of_at_most_40": _ids("x" * 41),
    "descriptions_of_at_most_1024": _function(description="x" * 1025),
    "at_most_128_tools": _many_tools,
    "schemas_are_objects": _function(parameters={"properties": {}}),
    "arrays_have_items": _with(tags={"type": "array"}),
    "content_or_calls": _set(4, content=None),
    "calls_answered_at_once": _call_without_result,
    "results_follow_calls": _result_without_call,
    "known_fields_only": _set(2, reasoning_content="They want tea."),
    "ids_of_nine_letters_or_digits": _ids("r2_0_0"),
    "roles_in_order": lambda body: body["messages"].pop(4),
    "as_many_results_as_calls": _call_without_result,
    "thoughts_come_back_with_calls": _without(2, "reasoning_content"),
    "no_call_is_forced_while_thinking": lambda body: body.update(tool_choice="required", enable_thinking=True),
    "no_thoughts_come_back": _set(2, reasoning_content="They want tea."),
    "turns_alternate": _user_again,
    "no_message_is_empty": _set(4, content=""),
    "results_have_their_calls": _result_without_call,
    "every_property_has_a_type": _with(any={"description": "Anything"}),
    "no_type_beside_any_of": _with(any={"type": "string", "anyOf": [{"type": "string"}]}),
    "items_are_one_schema": _with(pair={"type": "array", "items": [{"type": "string"}]}),
    "thinking_only_in_streams": lambda body: body.update(model="qwen3-32b", stream=False),
    "content_is_there": _without(2, "content"),
    "no_empty_text_beside_calls": _set(2, content=""),
    "the_newest_words_are_there": _set(5, content=""),
    "results_and_calls_pair": _result_without_call,
    "ids_are_unique": _same_id_twice,
    "arguments_are_objects": _arguments('"tea"'),
    "tools_have_parameters": _function(parameters=None),
    "results_are_text": _set(3, content=[{"type": "text", "text": "page 7"}]),
    "tools_are_switched_on": lambda body: body.update(tools=[{"function": {"name": "find"}}]),
    "the_model_has_no_tools": lambda body: body.update(tools=[{"function": {"name": "find"}}]),
    "roles_alternate": _user_again,
    "schemas_become_a_grammar": _with(any=True),
    "patterns_are_anchored": _with(code={"type": "string", "pattern": "[A-Z]+"}),
    "few_repetitions": _with(text={"type": "string", "maxLength": 10_000}),
    "contents_are_text": _set(5, content=[{"type": "text", "text": "Thanks."}]),
    "properties_are_objects": _with(any=True),
}


def _block(place: int, **values: Any) -> Break:
    """A message of Anthropic whose first block has these values."""
    return lambda body: body["messages"][place]["content"][0].update(values)


def _same_round_twice(body: Json) -> None:
    body["messages"][1:1] = body["messages"][1:3]


ANTHROPIC: dict[str, Break] = {
    "the_first_message_is_the_users": lambda body: body["messages"].pop(0),
    "ids_of_letters_digits_marks": _block(1, id="functions.find:0"),
    "ids_are_unique": _same_round_twice,
    "calls_answered_in_the_next_message": lambda body: body["messages"].pop(2),
    "results_follow_calls": lambda body: body["messages"].pop(1),
    "no_empty_text": _block(3, text=" \n"),
    "no_white_space_at_the_end": lambda body: (body["messages"].pop(), _block(3, text="On page 7. ")(body)),
    "tools_are_defined_where_they_were_used": lambda body: body.pop("tools"),
    "tool_names": lambda body: body["tools"][0].update(name="find it"),
    "schemas_are_objects": lambda body: body["tools"][0].update(input_schema={"properties": {}}),
    "no_alternatives_at_the_top": lambda body: _schema(body).update(anyOf=[{"required": ["q"]}]),
    "keys_of_letters_digits_marks": _with(**{"$top": {"type": "integer"}}),
    "thoughts_first_while_thinking": lambda body: (
        body.update(thinking={"type": "enabled", "budget_tokens": 1024}),
        _cut(body["messages"]),
    ),
    "thoughts_are_signed": lambda body: body["messages"][1]["content"].insert(
        0, {"type": "thinking", "thinking": "Tea.", "signature": "of another model"}
    ),
}


def _part(place: int, **values: Any) -> Break:
    return lambda body: body["contents"][place]["parts"][0].update(values)


def _declaration(**values: Any) -> Break:
    return lambda body: body["tools"][0]["function_declarations"][0].update(values)


GEMINI: dict[str, Break] = {
    "schemas_are_objects": _with(raw=True),
    "known_fields_only": lambda body: _schema(body).update({"$schema": "https://json-schema.org/draft-07/schema#"}),
    "arrays_have_items": _with(tags={"type": "array"}),
    "enums_are_strings": _with(size={"type": "integer", "enum": [1, 2]}),
    "function_names": _declaration(name="find it"),
    "as_many_results_as_calls": lambda body: body["contents"][1]["parts"].append({"functionCall": {"name": "find"}}),
    "calls_follow_users": lambda body: body["contents"].insert(1, {"role": "model", "parts": [{"text": "I look."}]}),
    "parts_are_not_empty": _part(3, text=""),
    "first_calls_are_signed": lambda body: (
        _cut(body["contents"]),
        body["contents"][1]["parts"][0].pop("thoughtSignature"),
    ),
}
