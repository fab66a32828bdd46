"""One legal request for each provider: a round of tools, its answer, and a new message."""

from __future__ import annotations

import copy

from tests.providers.dialect import Dialect
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.deepseek import DeepSeek, DeepSeekR1
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.kimi import Kimi
from tests.providers.dialects.mimo import MiMo
from tests.providers.dialects.ollama import Ollama, OllamaWithoutTools
from tests.providers.dialects.qwen import QwenGateway
from tests.providers.dialects.vllm import VLLMWithoutTools
from tests.providers.said import Json

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
