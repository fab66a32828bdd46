"""vLLM: a Mistral model by Mistral's own tokenizer, with or without the switches that make it call tools."""

from __future__ import annotations

from typing import ClassVar

from tests.providers.chat_completions import ChatCompletions
from tests.providers.dialect import Rule
from tests.providers.dialects.mistral import ids_of_nine, roles_in_order
from tests.providers.said import Called, Heard, Json


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
