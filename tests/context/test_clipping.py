"""F3: a text cut to tokens keeps head and tail, and says that something is gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.context.clipping import clip_tokens
from tests.context.conversations import texts, tokenizer


@given(texts(4_000), st.integers(30, 400))
def test_F3_a_text_is_cut_to_tokens_and_says_so(text: str, tokens: int) -> None:
    long = text * 20
    kept = clip_tokens(long, tokens, tokenizer().estimate)
    assert tokenizer().estimate(kept) <= tokens
    assert kept == long or "characters cut" in kept


def test_F3_a_text_that_fits_is_the_same_object() -> None:
    text = "short enough"
    assert clip_tokens(text, 10, tokenizer().estimate) is text


def test_F3_head_and_tail_both_stay() -> None:
    kept = clip_tokens("FIRST " + "middle " * 3_000 + "LAST", 60, tokenizer().estimate)
    assert kept.startswith("FIRST") and kept.endswith("LAST")
