"""C7: an overflow is recognised by the Host's words, the provider's, or its size; a rate limit never is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.context.overflow import HOST_RATE_LIMITS, HOST_TEXTS, Overflow, is_overflow, recognise

CASES = Path(__file__).parents[1] / "runs" / "cases" / "overflow_errors.jsonl"

OWN_CASES = (
    (True, "litellm.BadRequestError: prompt is too long: 215000 tokens > 200000 maximum"),
    (True, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40100 tokens."),
    (True, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    (True, "Please reduce the length of the messages or completion."),
    (True, "输入内容过长，超过模型支持的最大长度"),
    (True, "Requested tokens (5000) exceed context window of 4096"),
    (True, "request (9000 tokens) exceeds the available context size (8192 tokens)"),
    (True, "413 (no body)"),
    (False, "max_tokens must be at most 8192"),
    (False, "429 Too Many Requests: input tokens per minute exceeded"),
    (False, "You exceeded your current quota, please check your plan"),
    (False, "Invalid API key"),
    (False, "Connection failed"),
    (False, "tool_call_id call_0 was not found in messages"),
    (False, "请求过于频繁，请稍后再试"),
)


def recorded_cases() -> tuple[tuple[bool, str], ...]:
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    return tuple((row["is_context_overflow"], row["message"]) for row in rows)


@pytest.mark.parametrize(("overflow", "text"), (*OWN_CASES, *recorded_cases()))
def test_C7_provider_texts_are_told_apart(overflow: bool, text: str) -> None:
    assert is_overflow(text, counted=1_000, window=100_000) is overflow
    wrapped = f"ActionCallError: RequesterError: Model request failed: {text}"
    assert is_overflow(wrapped, counted=1_000, window=100_000) is overflow


@pytest.mark.parametrize("text", HOST_TEXTS)
def test_C7_the_hosts_sentence_is_known_in_each_of_its_languages(text: str) -> None:
    assert recognise(f"RequesterError: x: {text.upper()}", counted=10, window=100_000) is Overflow.SAID


@pytest.mark.parametrize("text", HOST_RATE_LIMITS)
def test_C7_a_rate_limit_is_no_overflow_even_near_the_window(text: str) -> None:
    assert not is_overflow(f"RequesterError: x: {text}", counted=99_000, window=100_000)


def test_C7_there_is_a_sentence_for_each_of_the_eight_languages() -> None:
    assert len(set(HOST_TEXTS)) == len(set(HOST_RATE_LIMITS)) == 8


@pytest.mark.parametrize("text", ["Invalid request parameters", "API error", "", "请求参数错误"])
def test_C7_any_failure_within_a_tenth_of_the_window_may_be_one(text: str) -> None:
    assert recognise(text, counted=90_000, window=100_000) is Overflow.CLOSE
    assert recognise(text, counted=74_000, window=100_000, reserve=16_000) is Overflow.CLOSE
    assert recognise(text, counted=89_999, window=100_000) is Overflow.NONE
