from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.models import runaway
from runner.models.runaway import Runaway, Watch, chants, only_blanks_come


@given(st.text(min_size=1, max_size=150), st.text(max_size=300))
def test_S3_a_chant_is_a_short_piece_over_and_over(piece: str, before: str) -> None:
    assert chants(before + piece * 600)


def test_S3_prose_lists_and_tables_are_no_chant() -> None:
    assert not chants("\n".join(f"| {n} | value {n * 7} |" for n in range(200)))
    assert not chants("word " * 20)
    assert not chants(" ".join(f"number {n}" for n in range(300)))


def test_S3_endless_white_space_is_noticed_behind_a_reply_only() -> None:
    assert only_blanks_come("{}" + "\n" * 500)
    assert not only_blanks_come("{}" + "\n" * 50)


def test_S3_looking_for_chants_costs_a_bounded_piece_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def look(text: str) -> bool:
        looked_at.append(len(text))
        return False

    monkeypatch.setattr(runaway, "chants", look)
    watch = Watch()
    for n in range(6_000):
        watch.feed(f"{n} ")
        assert len(watch._newest) + sum(map(len, watch._since)) <= 810
    assert max(looked_at) <= 600
    assert len(looked_at) > 100


def left_at(watch: Watch, pieces: list[str]) -> int | None:
    """How many characters had come when the reply was left."""
    came = 0
    for piece in pieces:
        came += len(piece)
        if watch.feed(piece):
            return came
    return None


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (["- Anna: KEY-1\n"] * 500, Runaway.CHANT),
        (["Facts: KEY-1."] + ["\n"] * 900, Runaway.BLANKS),
        ([f"{n} and more, " for n in range(3_000)], Runaway.LENGTH),
        (["<think>Hm.</think>"] + [f"{n} and more, " for n in range(3_000)], Runaway.LENGTH),
    ],
)
def test_F5_a_reply_that_can_be_no_summary_is_left_early(pieces: list[str], why: Runaway) -> None:
    watch = Watch(most=4_000)
    came = left_at(watch, pieces)
    assert came is not None and came <= 6_000
    assert watch.runaway is why


@pytest.mark.parametrize("opening", ["<think>", "<THINK>", "<thinking>"])
def test_F5_thoughts_before_a_summary_may_be_long(opening: str) -> None:
    thought = [opening, *(f"{n} I wonder. " for n in range(3_000)), opening.replace("<", "</")]
    assert left_at(Watch(most=1_000), [*thought, "Facts: KEY-1."]) is None


@given(st.integers(min_value=0, max_value=3_000), st.integers(min_value=1, max_value=300))
def test_F5_a_reply_within_its_length_is_never_left(most: int, size: int) -> None:
    text = "".join(f"{n} " for n in range(2_000))[:most]
    assert left_at(Watch(most=most), [text[at : at + size] for at in range(0, len(text), size)]) is None


def test_F5_measuring_a_long_thought_takes_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def stripped(text: str, *, anywhere: bool) -> str:
        read.append(len(text))
        return ""

    monkeypatch.setattr(runaway, "without_thoughts", stripped)
    left_at(Watch(most=100), ["<think>", *(f"{n} so. " for n in range(60_000))])
    assert sum(read) <= 6 * max(read)
