"""Mistral: nine-character ids, a strict order of roles, no field that it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule
from tests.providers.offered import neighbours, orphans, unanswered
from tests.providers.said import Called, Heard, Json

_ID = re.compile(r"[a-zA-Z0-9]{9}")
_FOLLOWERS = {"user": ("assistant",), "assistant": ("user", "tool"), "tool": ("assistant", "tool")}
_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}
_CODES = {"Tool call": "3280", "Unexpected": "3230", "Expected": "3230", "Not the same": "3230", "Assistant": "3240"}


def ids_of_nine(heard: Heard) -> str | None:
    """Shared with every server that reads requests by Mistral's own tokenizer."""
    for id in [*heard.call_ids, *heard.answered_ids]:
        if not _ID.fullmatch(id):
            return f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def roles_in_order(heard: Heard) -> str | None:
    """Shared as well: what Mistral's templates raise for."""
    for before, turn in neighbours(heard):
        if turn.role not in _FOLLOWERS.get(before.role, (turn.role,)):
            return f"Unexpected role '{turn.role}' after role '{before.role}'"
    if heard.turns[-1].role not in ("user", "tool"):
        last = heard.turns[-1].role
        return f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {last}"
    return None


def _pairs(heard: Heard) -> str | None:
    return "Not the same number of function calls and responses" if unanswered(heard) or orphans(heard) else None


def _contents(heard: Heard) -> str | None:
    for turn in heard.turns:
        if turn.role == "assistant" and not turn.text and not turn.calls:
            return "Assistant message must have either content or tool_calls, but not none."
    return None


def _fields(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        for key in sorted(message.keys() - _FIELDS.get(str(message.get("role")), message.keys())):
            place = f'["body","messages",{at},"{message["role"]}","{key}"]'
            return f'[{{"type":"extra_forbidden","loc":{place},"msg":"Extra inputs are not permitted"}}]'
    return None


class Mistral(ChatCompletions):
    name = "Mistral"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("known_fields_only", "BerriAI/litellm#6696", _fields, status=422),
        Rule("ids_of_nine_letters_or_digits", "nearai/ironclaw#1241", ids_of_nine),
        Rule("roles_in_order", "datapizza-labs/datapizza-ai#98", roles_in_order),
        Rule("as_many_results_as_calls", "mistralai/client-ts#106", _pairs),
        Rule("content_or_calls", "OpenHands/OpenHands#8685", _contents),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"D{next(self._numbers):04d}PevK"

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        """A call comes whole, in one event."""
        made: Json = {"index": index, "id": call.id, "function": {"name": call.name, "arguments": call.written}}
        yield made

    def error(self, status: int, words: str) -> Json:
        code = next((code for head, code in _CODES.items() if words.startswith(head)), None)
        return {"object": "error", "message": words, "type": "invalid_request_error", "param": None, "code": code}


# vLLM: a Mistral model by Mistral's own tokenizer, with or without the switches that make it call tools.


def _switched_on(heard: Heard) -> str | None:
    if heard.tools and heard.body.get("tool_choice", "auto") == "auto":
        return '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    return None


class VLLM(ChatCompletions):
    """`--tokenizer-mode mistral`, tools switched on."""

    name = "vLLM"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("ids_of_nine_letters_or_digits", "vllm-project/vllm#12332", ids_of_nine),
        Rule("roles_in_order", "NousResearch/hermes-agent#20154", roles_in_order),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"VLLM{next(self._numbers):05d}"

    def error(self, status: int, words: str) -> Json:
        return {"error": {"message": words, "type": "BadRequestError", "param": None, "code": status}}


class VLLMWithoutTools(VLLM):
    """Any model, started without the switches for tools."""

    name = "vLLM without tools"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("tools_are_switched_on", "vllm-project/vllm, docs, Tool Calling", _switched_on),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"chatcmpl-tool-{next(self._numbers):032x}"
