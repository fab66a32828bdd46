"""L8, S3: what of a request of the small profile stays from one request to the next."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Text, ToolCall, ToolResult, Unit, UserTurn, newest_user
from runner.small import prompt
from runner.small.request_shaping import HISTORY_TURNS, codes_in, recent_turns
from runner.small.shown import Places, choose
from runner.tools.results import ErrorCode


def user() -> UserTurn:
    return UserTurn((Text("?"),))


def conversation(rounds: list[int]) -> tuple[Unit, ...]:
    """Questions, each with so many turns of the model behind it."""
    units: list[Unit] = []
    for count in rounds:
        units += [user(), *(AssistantTurn("!") for _ in range(count))]
    return tuple(units)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12))
def test_S3_at_most_twelve_turns_stay_and_the_newest_question_and_the_newest_turn_among_them(rounds: list[int]) -> None:
    units = conversation(rounds)
    kept = recent_turns(units)
    assert 1 <= len(kept) <= HISTORY_TURNS
    assert isinstance(kept[0], UserTurn) and kept[-1] is units[-1]
    assert any(unit is units[newest_user(units)] for unit in kept)


@given(st.lists(st.integers(1, 3), min_size=10, max_size=40))
def test_L8_the_history_of_a_small_model_begins_anew_in_few_of_its_requests(rounds: list[int]) -> None:
    units = conversation(rounds)
    kept = [recent_turns(units[: end + 1]) for end in range(len(units))]
    moves = sum(one[0] is not two[0] for one, two in itertools.pairwise(kept))
    assert moves <= len(units) / 5


def tools(*names: str) -> list[ToolSpec]:
    return [ToolSpec(name, f"Works with {name}.", {}) for name in names]


OFFERED = tools("lights", "music", "stocks", "timer")


def shown(query: str, before: list[str], **more: object) -> set[str]:
    given = {"most": 2, "loaded": (), "recent": (), **more}
    return {tool.name for tool in choose(OFFERED, query, before=before, **given).tools}  # type: ignore[arg-type]


def test_L8_tools_that_were_shown_stay_while_no_other_is_asked_for() -> None:
    assert shown("good morning", ["timer", "stocks"]) == {"timer", "stocks"}
    assert shown("the timer please", ["timer", "stocks"]) == {"timer", "stocks"}


def test_S2_a_tool_that_is_asked_for_takes_the_place_of_the_one_least_like_the_request() -> None:
    assert shown("lights on, and a timer", ["timer", "stocks"]) == {"timer", "lights"}
    assert shown("lights and music", ["timer", "stocks"]) == {"music", "lights"}


def test_S2_a_tool_that_was_loaded_is_always_shown() -> None:
    assert "music" in shown("the timer and the stocks", ["timer", "stocks"], loaded=("music",))


def test_L8_places_that_a_conversation_kept_count_where_those_tools_are_still_on_offer() -> None:
    assert shown("good morning", ["timer", "gone"]) == {"lights", "music"}
    assert Places(["a", 5, None]).names == ["a"]
    assert Places({"a": 1}).names == []


def test_L8_places_are_noted_when_they_change_and_only_where_they_last() -> None:
    noted: list[object] = []
    places = Places(None, noted.append)
    places.keep(["a", "b"], lasting=True)
    places.keep(["a", "b"], lasting=True)
    places.keep(["a"], lasting=False)
    assert noted == [["a", "b"]]


def test_L8_error_codes_stay_explained_while_they_stand_in_the_history() -> None:
    call, failed = ToolCall("c", "look", "{}"), ToolResult("c", "look", "Error [timeout]: no answer")
    assert codes_in((user(), AssistantTurn("", (call,), (failed,)))) == {ErrorCode.TIMEOUT}
    assert codes_in((user(), AssistantTurn("Error [failed]: said in words"))) == frozenset()


@pytest.mark.parametrize("code", [*ErrorCode, "of_a_later_version"])
def test_S3_a_code_that_has_no_explanation_is_left_out(code: str) -> None:
    call, failed = ToolCall("c", "look", "{}"), ToolResult("c", "look", f"Error [{code}]: no")
    assert codes_in((user(), AssistantTurn("", (call,), (failed,)))) == {one for one in prompt.CODES if one == code}
