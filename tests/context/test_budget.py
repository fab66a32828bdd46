"""F1 and C7: how large a request may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.context.budget import LEAST_WINDOW, Budget, planning_scale
from runner.host.events import Json


def test_F1_the_input_budget_is_the_window_less_the_reserve() -> None:
    assert Budget.of(200_000, 16_384).input == 183_616


def test_F1_the_reserve_is_at_most_a_quarter_of_the_window() -> None:
    assert Budget.of(8_000, 16_384) == Budget(8_000, 2_000)


@pytest.mark.parametrize("reported", [None, 0, -1, True, "128000", 128_000.0, [], {}])
def test_F1_a_window_the_host_does_not_really_report_changes_nothing(reported: Json) -> None:
    assert Budget.of(100_000, 10_000, reported=reported) == Budget.of(100_000, 10_000)


def test_F1_the_hosts_window_counts_up_to_the_setting() -> None:
    assert Budget.of(100_000, 10_000, reported=32_000).window == 32_000
    assert Budget.of(100_000, 10_000, reported=1_000_000).window == 100_000


def test_C7_a_learned_window_holds_where_it_is_smaller() -> None:
    assert Budget.of(100_000, 10_000, reported=64_000, learned=30_000).window == 30_000
    assert Budget.of(100_000, 10_000, learned=300_000).window == 100_000
    assert Budget.of(100_000, 10_000, learned=3).window == 100_000


def test_C7_a_refusal_halves_what_was_counted_or_keeps_a_smaller_budget() -> None:
    budget = Budget.of(100_000, 10_000)
    assert budget.tighter(40_000).input == 20_000
    assert budget.tighter(40_000).tighter(20_000).input == 10_000
    assert budget.tighter(400_000).input == 90_000


@given(st.integers(-10, 10**7), st.integers(-10, 10**7), st.integers(0, 10**7))
def test_F1_every_budget_leaves_room_for_input(window: int, reserve: int, counted: int) -> None:
    budget = Budget.of(window, reserve)
    assert budget.window >= LEAST_WINDOW
    assert 0 < budget.tighter(counted).input <= budget.input <= budget.window
    assert budget.input >= budget.window * 3 // 4
    assert budget.near <= budget.input


def test_F2_the_scale_is_the_ratio_of_both_counts_within_bounds() -> None:
    assert planning_scale(300, 200) == 1.5
    assert planning_scale(0, 200) == planning_scale(300, 0) == 1.0
    assert planning_scale(10**9, 1) == 4.0
