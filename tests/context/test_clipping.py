"""D4, F3: a cut is visible and splits no grapheme."""

from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from runner.context.clipping import boundaries, clip, clip_tokens
from tests.context.conversations import tokenizer

CLUSTERS = ("a", "é", "e\u0301", "👩‍👩‍👧‍👦", "🇩🇪", "中", "\r\n", " ", "नि", "👍🏽")
joined = st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=80).map("".join)


@given(joined, st.integers(0, 300))
def test_F3_boundaries_around_a_point_are_those_of_the_whole_text(text: str, at: int) -> None:
    ends = [0, *(cluster.end() for cluster in regex.finditer(r"\X", text))]
    point = min(at, len(text))
    assert boundaries(text, at) == (max(e for e in ends if e <= point), min(e for e in ends if e >= point))


@given(joined, st.integers(40, 120))
def test_F3_a_clipped_text_keeps_whole_graphemes_of_head_and_tail_within_its_limit(text: str, limit: int) -> None:
    long = text * 20
    cut = clip(long, limit)
    assert len(cut) <= max(limit, 0) or cut == long
    if cut != long:
        head, tail = cut.split("\n[… ")[0], cut.split(" …]\n")[-1]
        clusters = regex.findall(r"\X", long)
        assert regex.findall(r"\X", head) == clusters[: len(regex.findall(r"\X", head))]
        assert not tail or regex.findall(r"\X", tail) == clusters[-len(regex.findall(r"\X", tail)) :]


def test_F3_the_note_says_how_much_is_gone() -> None:
    cut = clip("x" * 1_000, 100)
    gone = int(cut.split("[… ")[1].split(" ")[0])
    assert gone + cut.count("x") == 1_000


@given(joined, st.integers(30, 400))
def test_F3_a_text_is_cut_to_tokens(text: str, tokens: int) -> None:
    cut = clip_tokens(text * 50, tokens, tokenizer().estimate)
    assert tokenizer().estimate(cut) <= tokens
