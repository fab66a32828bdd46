"""S3: which turns go when a prompt does not fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from local.fitting import without_oldest
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn

UNITS = st.lists(st.sampled_from("UA"), max_size=14).map(
    lambda kinds: tuple(
        UserTurn((Text(str(place)),)) if kind == "U" else AssistantTurn(str(place))
        for place, kind in enumerate(["U", *kinds])
    )
)


@given(UNITS)
def test_S3_the_oldest_turns_go_until_only_the_newest_request_and_what_came_last_are_left(
    units: tuple[Unit, ...],
) -> None:
    newest = [unit for unit in units if isinstance(unit, UserTurn)][-1]
    rounds = 0
    last = units
    while (fewer := without_oldest(last)) is not None:
        assert len(fewer) < len(last)
        assert isinstance(fewer[0], UserTurn)
        assert any(unit is newest for unit in fewer)
        assert fewer[-1] is units[-1]
        last, rounds = fewer, rounds + 1
    assert rounds <= len(units)
    assert last[0] is newest
    assert len(last) <= 2
