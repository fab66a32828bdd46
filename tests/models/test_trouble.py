"""C3, C7, C8: why a model call failed, from words in the Host's eight languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.errors import HostCallFailed, HostFailure, ModelTrouble
from runner.models.trouble import trouble_of


def of(text: str, kind: HostFailure = HostFailure.REFUSED) -> ModelTrouble:
    return trouble_of(HostCallFailed("stream", kind, f"ActionCallError: RequesterError: {text}"))


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("Rate limit exceeded or insufficient balance", ModelTrouble.RATE_LIMIT),
        ("Request timed out", ModelTrouble.TIMEOUT),
        ("Connection failed", ModelTrouble.NETWORK),
        ("Invalid API key", ModelTrouble.AUTH),
        ("Invalid request parameters", ModelTrouble.BAD_REQUEST),
        ("too many tokens per minute, context is fine", ModelTrouble.RATE_LIMIT),
        ('ValueError: Reasoning level "max" is not supported by model m', ModelTrouble.REASONING_REFUSED),
        ("ValueError: reasoning_config conflicts with advanced parameters: thinking", ModelTrouble.REASONING_REFUSED),
        ("This LangBot Host does not support reasoning_level", ModelTrouble.REASONING_REFUSED),
        ("Invalid model or endpoint", ModelTrouble.OTHER),
        ("", ModelTrouble.OTHER),
    ],
)
def test_C8_words_tell_the_trouble(text: str, trouble: ModelTrouble) -> None:
    assert of(text) is trouble
    assert of(text.upper()) is trouble, "case does not matter"


@pytest.mark.parametrize(
    ("kind", "trouble"),
    [
        (HostFailure.TIMEOUT, ModelTrouble.TIMEOUT),
        (HostFailure.CONNECTION, ModelTrouble.NETWORK),
        (HostFailure.DENIED, ModelTrouble.OTHER),
        (HostFailure.MALFORMED, ModelTrouble.OTHER),
        (HostFailure.REFUSED, ModelTrouble.OTHER),
    ],
)
def test_C8_where_words_are_missing_the_kind_of_failure_tells(kind: HostFailure, trouble: ModelTrouble) -> None:
    assert of("whatever", kind) is trouble


def test_C1_a_time_out_between_runtime_and_host_is_a_time_out_of_the_model() -> None:
    assert of("ActionCallTimeoutError: Action invoke_llm_stream call timed out") is ModelTrouble.TIMEOUT


@given(st.text(), st.sampled_from(HostFailure))
def test_Q4_any_text_has_some_trouble(text: str, kind: HostFailure) -> None:
    assert isinstance(of(text, kind), ModelTrouble)
