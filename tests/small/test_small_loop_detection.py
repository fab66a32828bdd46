"""S3: the loop breaker, by outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.loop.loop_detection import Seen
from runner.small.loop_detection import READS_ALLOWED, Circle, Circles


def act(call: str, result: str, **about: bool) -> Seen:
    return Seen.of(call, "{}", result, failed=about.get("failed", False), reads=about.get("reads", False))


@pytest.mark.parametrize("length", range(1, 6))
def test_S3_a_cycle_of_up_to_five_is_flagged_once_and_then_stops(length: int) -> None:
    circles = Circles()
    found = [circles.add(act(f"tool {n % length}", f"result {n % length}")) for n in range(2 * length + 1)]
    assert found[: 2 * length - 1] == [Circle.NONE] * (2 * length - 1)
    assert found[2 * length - 1 :] == [Circle.FLAG, Circle.STOP]


def test_S3_a_failure_counts_as_the_same_whatever_it_says() -> None:
    circles = Circles()
    found = [circles.add(act("save", f"failed at {n} ms", failed=True)) for n in range(3)]
    assert found == [Circle.NONE, Circle.FLAG, Circle.STOP]


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_S3_an_action_whose_result_changes_may_always_repeat(calls: list[str]) -> None:
    circles = Circles()
    assert all(circles.add(act(call, f"result {n}")) is Circle.NONE for n, call in enumerate(calls))


def test_S3_reads_are_exempt_until_eight_identical_results() -> None:
    circles = Circles()
    found = [circles.add(act("read", "same", reads=True)) for _ in range(READS_ALLOWED)]
    assert found == [Circle.NONE] * 7 + [Circle.STOP]
