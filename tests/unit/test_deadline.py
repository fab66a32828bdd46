"""G3: the run's own deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.deadline import Deadline, deadline_for

SECONDS = st.none() | st.floats(-1e6, 1e6)


def test_G3_without_any_limit_there_is_no_deadline() -> None:
    assert deadline_for(5.0, None, None) == Deadline(None, None)
    assert not Deadline(None, None).is_near(1e9)


@pytest.mark.parametrize(
    ("timeout", "host_left", "end"),
    [
        (300, None, 295.0),
        (None, 300, 295.0),
        (300, 200, 195.0),
        (60, 200, 57.0),
        (60, 61, 57.0),
        (20, None, 18.0),
        (3, None, 1.0),
    ],
)
def test_G3_the_smaller_limit_counts_less_a_margin_of_2_to_5_seconds(
    timeout: float, host_left: float, end: float
) -> None:
    assert deadline_for(0.0, timeout, host_left).end == pytest.approx(end)


@pytest.mark.parametrize(("limit", "wrap_up"), [(300, 265.0), (100, 75.0), (20, 14.0)])
def test_G3_from_20_percent_before_it_at_most_30_seconds_the_run_wraps_up(limit: float, wrap_up: float) -> None:
    deadline = deadline_for(0.0, limit, None)
    assert deadline.wrap_up == pytest.approx(wrap_up)
    assert deadline.is_near(wrap_up) and not deadline.is_near(wrap_up - 0.01)


@given(st.floats(0, 1e6), SECONDS, SECONDS)
def test_G3_every_deadline_lies_ahead_and_before_the_hosts(
    now: float, timeout: float | None, host_left: float | None
) -> None:
    deadline = deadline_for(now, timeout, host_left)
    if deadline.end is None or deadline.wrap_up is None:
        assert timeout is None and host_left is None
        return
    assert now <= deadline.wrap_up <= deadline.end
    assert deadline.end > now, "even a limit in the past leaves a moment to say so"
    shortest = min(limit for limit in (timeout, host_left) if limit is not None)
    if shortest >= 2.2:
        assert deadline.end <= now + shortest - 2 + 1e-6
