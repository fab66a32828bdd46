"""K3: what is offered passes LiteLLM's own conversions for Gemini and Anthropic, as LangBot's requester uses them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from runner.tools.offering import Offer, offered_schema
from tests.tools.odd_schemas import MALFORMED_DEEP, WELL_FORMED
from tests.tools.provider_subset import faults

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or importing it asks the network for prices
gemini = pytest.importorskip("litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini")
anthropic = pytest.importorskip("litellm.llms.anthropic.chat.transformation")


def _tool(schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}}


@given(WELL_FORMED | MALFORMED_DEEP)
def test_K3_neither_conversion_raises_and_nothing_of_a_field_is_lost(parameters: dict[str, Any]) -> None:
    offer = offered_schema(parameters)
    if not isinstance(offer, Offer):
        return
    names = list(offer.schema["properties"])  # type: ignore[arg-type]  # an object, as `faults` says
    assert faults(offer.schema) == []
    (made,) = gemini.VertexGeminiConfig()._map_function([_tool(offer.schema)], {})
    (declared,) = made["function_declarations"]
    assert list(declared["parameters"].get("properties", {})) == names
    (mapped, _) = anthropic.AnthropicConfig()._map_tool_helper(_tool(offer.schema))
    assert list(mapped["input_schema"]["properties"]) == names
    Draft202012Validator.check_schema(mapped["input_schema"])
