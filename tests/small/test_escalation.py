"""S3: the correction ladder."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runner.small.escalation import MOST_SLIPS, Correction, Ladder, Rung

NAMES = st.sampled_from(["", "a", "b", "get_weather"])
PROBLEMS = st.sampled_from(["", "missing city.", "x" * 5_000])
STEPS = st.lists(st.tuples(NAMES, PROBLEMS, st.booleans()), max_size=30)


def slip(ladder: Ladder, tool: str = "a", problem: str = "wrong.") -> Correction:
    return ladder.slip(tool, problem, example='{"name": "a"}', others=["b", "c"])


def test_S3_each_rung_says_something_of_its_own() -> None:
    ladder = Ladder()
    given_ = [slip(ladder) for _ in range(5)]
    assert [one.rung for one in given_] == list(Rung)
    assert len({one.text for one in given_}) == 5
    assert '{"name": "a"}' in given_[0].text
    assert "b or c" in given_[1].text and given_[1].resample
    assert given_[2].off == "a" and ladder.off == {"a"}


def test_S3_a_valid_call_sets_its_own_tool_back_and_no_other() -> None:
    ladder = Ladder()
    slip(ladder, "a"), slip(ladder, "a"), slip(ladder, "b"), slip(ladder, "b")
    ladder.valid("a")
    assert slip(ladder, "a").rung is Rung.EXAMPLE
    assert slip(ladder, "b").rung is Rung.OFF


def test_S3_ever_new_names_come_to_an_end_too() -> None:
    ladder = Ladder()
    rungs = [slip(ladder, f"tool {n}").rung for n in range(MOST_SLIPS)]
    assert rungs[-1] is Rung.STOP
    assert Rung.STOP not in rungs[:-1]


@given(STEPS)
def test_S3_no_two_corrections_in_a_row_are_equal(steps: list[tuple[str, str, bool]]) -> None:
    ladder = Ladder()
    texts: list[str] = []
    for tool, problem, valid in steps:
        if valid:
            ladder.valid(tool)
        texts.append(slip(ladder, tool, problem).text if len(texts) % 3 else ladder.unlike_before("the same words"))
    assert all(one != other for one, other in itertools.pairwise(texts))
    assert all(len(text) < 1_500 for text in texts)
