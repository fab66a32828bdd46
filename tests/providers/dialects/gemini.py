"""Gemini: contents with parts, calls without ids, a schema language of its own, and signatures that must come back."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers.dialect import Dialect, Rule
from tests.providers.offered import Node, nodes
from tests.providers.said import Called, Heard, Json, Said, Turn

_WORDS = re.compile(r"\w+")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_FIELDS = frozenset(
    _WORDS.findall(
        "type format title description nullable enum maxItems minItems properties required minProperties "
        "maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum "
        "additionalProperties"
    )
)
_SKIPPED = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""What Google's documents allow in the place of a signature for calls of another model, as LiteLLM encodes it."""
_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
_PLACE = "GenerateContentRequest.tools[0].function_declarations"


def _contents(body: Json) -> list[Json]:
    return list(body.get("contents") or ())


def _parts(content: Json, kind: str) -> list[Json]:
    return [part for part in content.get("parts") or () if _part(part, kind) is not None]


def _part(part: Json, kind: str) -> Any:
    """A part's field, whichever of Google's two spellings it has."""
    snake = re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", kind)
    return part.get(kind, part.get(snake))


def declarations(body: Json) -> list[Json]:
    """The functions of a request."""
    tools = body.get("tools") or ()
    return [one for tool in tools for one in (_part(tool, "functionDeclarations") or ())]


def _nodes(heard: Heard) -> Iterator[tuple[int, Node]]:
    for at, function in enumerate(declarations(heard.body)):
        if function.get("parameters") is not None:
            for node in nodes(function["parameters"]):
                yield at, node


def _schemas_are_objects(heard: Heard) -> str | None:
    for at, node in _nodes(heard):
        if not isinstance(node.value, dict):
            return (
                f"Invalid value at 'tools[0].function_declarations[{at}].parameters.{node.place}' "
                f"(type.googleapis.com/google.ai.generativelanguage.v1beta.Schema), {json.dumps(node.value)}"
            )
    return None


def _known_fields(heard: Heard) -> str | None:
    for at, node in _nodes(heard):
        for key in sorted(node.schema.keys() - _FIELDS):
            place = f"tools[0].function_declarations[{at}].parameters"
            return f"Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
    return None


def _items(heard: Heard) -> str | None:
    for at, node in _nodes(heard):
        if str(node.schema.get("type")).lower() == "array" and "items" not in node.schema:
            return f"{_PLACE}[{at}].parameters.{node.place}.items: missing field."
    return None


def _enums(heard: Heard) -> str | None:
    for at, node in _nodes(heard):
        enum = node.schema.get("enum")
        if enum is not None and str(node.schema.get("type")).lower() != "string":
            return f"{_PLACE}[{at}].parameters.{node.place}.enum: only allowed for STRING type"
        if enum is not None and not all(isinstance(one, str) and one for one in enum):
            return f"{_PLACE}[{at}].parameters.{node.place}.enum[0]: cannot be empty"
    return None


def _names(heard: Heard) -> str | None:
    for at, name in enumerate(heard.tools):
        if not _NAME.fullmatch(name):
            return (
                f"{_PLACE}[{at}].name: Invalid function name. Must start with a letter or an underscore. Must be "
                "alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum "
                "length of 64."
            )
    doubled = [name for name in heard.tools if heard.tools.count(name) > 1]
    return f"Duplicate function declaration found: {doubled[0]}" if doubled else None


def _as_many_results(heard: Heard) -> str | None:
    for before, content in itertools.pairwise([*_contents(heard.body), {}]):
        asked, answered = len(_parts(before, "functionCall")), len(_parts(content, "functionResponse"))
        if asked and asked != answered:
            return (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
    return None


def _calls_follow_users(heard: Heard) -> str | None:
    before: Json = {"role": "model"}
    for content in _contents(heard.body):
        if _parts(content, "functionCall") and before.get("role") == "model":
            return (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if _parts(content, "functionResponse") and not _parts(before, "functionCall"):
            return "Please ensure that function response turn comes immediately after a function call turn."
        before = content
    return None


def _parts_are_full(heard: Heard) -> str | None:
    for at, content in enumerate(_contents(heard.body)):
        if not content.get("parts"):
            return f"GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
        if any(part.get("text") == "" for part in content["parts"]):
            return "Unable to submit request because it must have a text parameter."
    return None


def _first_calls_signed(heard: Heard) -> str | None:
    contents = _contents(heard.body)
    newest = max((at for at, one in enumerate(contents) if _is_said(one)), default=0)
    for at, content in enumerate(contents[newest:], newest):
        for first in _parts(content, "functionCall")[:1]:
            signature = str(_part(first, "thoughtSignature"))
            if not signature.startswith("c2lnbmF0dXJl") and signature != _SKIPPED:
                name = _part(first, "functionCall")["name"]
                return (
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    f"work correctly. Additional data, function call `default_api:{name}`, position {at + 1}."
                )
    return None


class Gemini(Dialect):
    """Version 3, whose calls are signed: the first of each turn since the newest words must bring its signature."""

    name = "Gemini"
    base = ""
    done = ""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("schemas_are_objects", "anomalyco/opencode#49464", _schemas_are_objects),
        Rule("known_fields_only", "ai.google.dev, Schema", _known_fields),
        Rule("arrays_have_items", "NousResearch/hermes-agent#77617", _items),
        Rule("enums_are_strings", "ai.google.dev, Schema", _enums),
        Rule("function_names", "ai.google.dev, FunctionDeclaration", _names),
        Rule("as_many_results_as_calls", "google-gemini/gemini-cli#4217", _as_many_results),
        Rule("calls_follow_users", "GoogleCloudPlatform/generative-ai#368", _calls_follow_users),
        Rule("parts_are_not_empty", "ai.google.dev, Content", _parts_are_full),
        Rule("first_calls_are_signed", "ai.google.dev, Thought signatures", _first_calls_signed),
    )

    def heard(self, path: str, body: Json) -> Heard:
        name, _, action = path.rpartition("/")[2].partition(":")
        system = _part(body, "systemInstruction")
        spoken = [Turn("system", _text(system))] if system else []
        return Heard(
            model=name,
            body=body,
            turns=(*spoken, *(turn for content in _contents(body) for turn in _turns(content))),
            tools=tuple(str(one["name"]) for one in declarations(body)),
            streamed=action.startswith("stream"),
        )

    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        parts = list(self._said_parts(said))
        for part in parts[:-1]:
            yield _candidate([part])
        yield {**_candidate(parts[-1:], said.finish or "STOP"), "usageMetadata": _USAGE}

    def whole(self, said: Said, heard: Heard) -> Json:
        return {**_candidate(list(self._said_parts(said)), said.finish or "STOP"), "usageMetadata": _USAGE}

    def error(self, status: int, words: str) -> Json:
        state = "UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT"
        return {"error": {"code": status, "message": words, "status": state}}

    def _said_parts(self, said: Said) -> Iterator[Json]:
        if said.thoughts:
            yield {"text": said.thoughts, "thought": True}
        if said.text:
            yield {"text": said.text}
        for at, call in enumerate(said.calls):
            part: Json = {"functionCall": {"name": call.name, "args": call.read}}
            if at == 0:
                part["thoughtSignature"] = f"c2lnbmF0dXJl{next(self._numbers):04d}"
            yield part
        if not (said.thoughts or said.text or said.calls):
            yield {"text": ""}


def _candidate(parts: list[Json], finish: str | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini", "responseId": "r1"}


def _is_said(content: Json) -> bool:
    """Words of the user, not results."""
    return content.get("role") != "model" and not _parts(content, "functionResponse")


def _text(content: Json) -> str:
    return "\n".join(str(part["text"]) for part in content.get("parts") or () if part.get("text"))


def _turns(content: Json) -> Iterator[Turn]:
    for part in _parts(content, "functionResponse"):
        yield Turn("tool", json.dumps(_part(part, "functionResponse").get("response"), ensure_ascii=False))
    made = [_part(part, "functionCall") for part in _parts(content, "functionCall")]
    used = tuple(Called(str(one["name"]), one.get("args") or {}) for one in made)
    text = _text(content)
    if text or used or not _parts(content, "functionResponse"):
        yield Turn("assistant" if content.get("role") == "model" else "user", text, used)
