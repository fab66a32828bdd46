"""D4, F3: cuts never split a grapheme."""

from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.cut import clip, head, sendable, tail

_pieces = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        "\r\n",
        "é",
        "e\u0301",
        "中",
        "한",
        "🇩🇪",
        "🇩",
        "👩‍👩‍👧",
        "\u0301",
        "\u200d",
        "क्षि",
        "กำ",
        "👍🏽",
        "❤️",
        "x" * 9,
    ]
)
_texts = st.lists(_pieces, max_size=60).map("".join)


def _graphemes(text: str) -> list[str]:
    return regex.findall(r"\X", text)


@given(_texts, st.integers(0, 120))
def test_D4_a_head_is_the_longest_run_of_whole_graphemes(text: str, size: int) -> None:
    kept, wanted = head(text, size), ""
    for grapheme in _graphemes(text):
        if len(wanted) + len(grapheme) > size:
            break
        wanted += grapheme
    assert kept == wanted


@given(_texts, st.integers(0, 120))
def test_D4_a_tail_is_the_longest_run_of_whole_graphemes(text: str, size: int) -> None:
    kept, wanted = tail(text, size), ""
    for grapheme in reversed(_graphemes(text)):
        if len(wanted) + len(grapheme) > size:
            break
        wanted = grapheme + wanted
    assert kept == wanted


@given(_texts, st.integers(0, 60), st.integers(0, 40))
def test_D4_a_tail_of_a_part_begins_at_a_border_of_the_whole(text: str, size: int, lost: int) -> None:
    kept = tail(text[lost:], size, whole=False)
    assert len(kept) <= size
    assert text.endswith(kept)
    borders, at = {len(text)}, 0
    for grapheme in _graphemes(text):
        borders.add(at)
        at += len(grapheme)
    assert len(text) - len(kept) in borders


@given(_texts, st.integers(0, 150))
def test_D4_a_clip_is_bounded_and_counts_what_it_cut(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped.text) <= max(limit, 0)
    if clipped.cut == 0:
        assert clipped.text == text
    elif "…" in clipped.text and "…" not in text:
        start, _, rest = clipped.text.partition("\n[… ")
        count, _, end = rest.partition(" characters cut …]\n")
        assert count == f"{clipped.cut:,}"
        assert len(start) + len(end) + clipped.cut == len(text)
        assert text.startswith(start)
        assert text.endswith(end)


def test_D4_millions_of_joined_characters_are_cut_all_the_same() -> None:
    flags = "🇩🇪" * 500_000
    assert head(flags, 11) == "🇩🇪" * 5
    for part in (head(flags, 100_001), tail(flags, 100_001), tail(f"a{flags}", 11)):
        assert len(part) % 2 == 0
    assert tail(f"{flags}. The end", 100) == " The end"
    assert head("\u0301" * 1_000_000, 10) == ""


def test_D4_lone_surrogates_and_nul_do_not_go_on() -> None:
    assert sendable("a\ud800b\x00c\udfff😀") == "abc😀"
