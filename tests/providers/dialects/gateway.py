"""A gateway such as new-api: another provider's rules in its own words, and calls told twice or under several ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule, chunk, fragment, pieces
from tests.providers.dialects.mistral import ids_of_nine, roles_in_order
from tests.providers.dialects.openai import OpenAI, arrays_with_items
from tests.providers.said import Called, Heard, Json, Said


class Gateway(ChatCompletions):
    """Before OpenAI and Gemini; well behaved."""

    name = "Gateway"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("arrays_have_items", "NousResearch/hermes-agent#77617", arrays_with_items),
        *[rule for rule in OpenAI.rules if rule.name not in ("arrays_have_items", "known_parameters_only")],
    )

    def error(self, status: int, words: str) -> Json:
        error = {"message": f"{words} (request id: 2026)", "type": "new_api_error", "param": "", "code": None}
        return {"error": error}


class Resending(Gateway):
    """It bridges to OpenAI's other interface and tells a finished call once more, at the next index."""

    name = "Gateway that resends"

    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        named = Said(
            said.text,
            tuple(self.named(call, heard, at) for at, call in enumerate(said.calls)),
            said.thoughts,
            said.finish,
        )
        *body, end, usage = super().events(named, heard)
        yield from body
        for at, call in enumerate(named.calls):
            again = fragment(len(named.calls) + at, call.id, call.name, call.written)
            yield chunk({"tool_calls": [again]})
        yield end
        yield usage


class Renaming(Gateway):
    """It makes a new id for every fragment behind the first."""

    name = "Gateway that changes ids"

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        yield fragment(index, call.id, call.name, "")
        other = f"call_{next(self._numbers):024d}"
        for piece in pieces(call.written):
            yield fragment(index, other, None, piece)


class SameIndex(Gateway):
    """It gives every call of a reply the index 0, under ids of their own."""

    name = "Gateway with one index"

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        yield fragment(0, call.id, call.name, call.written)


class Router(Gateway):
    """OpenRouter before Mistral, whose errors it passes on as they are."""

    name = "Router before Mistral"
    base = "/api/v1"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("ids_of_nine_letters_or_digits", "nearai/ironclaw#1241", ids_of_nine),
        Rule("roles_in_order", "charmbracelet/crush#279", roles_in_order),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"D{next(self._numbers):04d}PevK"

    def error(self, status: int, words: str) -> Json:
        raw = json.dumps({"object": "error", "message": words, "code": "3230"})
        metadata = {"raw": raw, "provider_name": "Mistral"}
        return {"error": {"message": "Provider returned error", "code": status, "metadata": metadata}}
