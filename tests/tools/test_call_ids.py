"""C2: ids that are unique in a run and fit for every provider."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from runner.tools.call_ids import CallIds


def test_C2_ids_that_repeat_over_rounds_become_unique_and_good_ones_stay() -> None:
    ids = CallIds()
    assert [ids.claim(wished) for wished in ("call_0", "call_0", None, "", "functions.x:0")] == [
        "call_0",
        "call_0_1",
        "call_2",
        "call_3",
        "functions_x_0",
    ]


def test_C2_ids_of_the_history_are_taken() -> None:
    ids = CallIds(["a", "b"])
    assert {ids.claim("a"), ids.claim("b")}.isdisjoint({"a", "b"})


@given(st.lists(st.none() | st.text(max_size=60) | st.sampled_from(["a", "a_1", "x" * 40, "x" * 41]), max_size=30))
def test_C2_every_id_is_legal_and_new(wishes: list[str | None]) -> None:
    ids = CallIds()
    claimed = [ids.claim(wished) for wished in wishes]
    assert len(set(claimed)) == len(claimed)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", found, re.ASCII) for found in claimed)
