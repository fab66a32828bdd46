"""L5: a long unit in pieces, none of it left out, and its row covered by the last piece told alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.context.pieces import in_pieces
from runner.context.tokens import Prices
from runner.context.transcript import render
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn
from tests.context.conversations import assistant, conversations, ruler, tool_turn, user

PRICES = Prices(ruler())
ROOM = 200


def words_of(units: tuple[Unit, ...]) -> str:
    return re.sub(r"\s|User:|Assistant:", "", "".join(map(render, units)))


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"MARK-{number}-7 is here." for number in range(400)),
        "。".join(f"第{number}件事在这里" for number in range(300)),
        "\n\n".join(f"paragraph {number} " + "words " * 30 for number in range(40)),
        "nothing but letters" * 300,
    ],
    ids=["sentences", "Chinese", "paragraphs", "one run"],
)
def test_L5_a_long_message_is_told_whole_in_pieces_that_fit(text: str, newest: bool) -> None:
    for unit in (user(text, 7), assistant(text, 7)):
        pieces, origins = in_pieces((unit,), ROOM, PRICES, newest=newest)
        assert len(pieces) > 3 and set(origins) == {0}
        assert all(PRICES.text(render(piece)) <= ROOM for piece in pieces)
        assert words_of(pieces) == words_of((unit,)) or "letters" in text
        spans = [piece.span for piece in pieces]
        last = 0 if newest else -1
        assert spans.pop(last) == unit.span and set(spans) == {None}


def test_L5_facts_are_not_cut_in_two() -> None:
    text = " ".join(f"MARK-{number}-7 is here, " + "and so on " * 9 + "." for number in range(200))
    pieces, _ = in_pieces((user(text, 1),), ROOM, PRICES)
    told = {mark for piece in pieces for mark in re.findall(r"MARK-\d+-7", render(piece))}
    assert len(told) == 200


def test_L5_a_turn_of_many_calls_is_cut_between_them() -> None:
    turn = tool_turn("row of data " * 200, 1, text="I look. " * 200)
    pieces, _ = in_pieces((turn,), 400, PRICES)
    calls = [call for piece in pieces if isinstance(piece, AssistantTurn) for call in piece.calls]
    assert calls == list(turn.calls) and len(pieces) > 1


def test_L5_short_units_and_tiny_rooms_change_nothing() -> None:
    units = (user("hi", 1), assistant("hello " * 10, 2))
    assert in_pieces(units, ROOM, PRICES) == (units, (0, 1))
    long = (user("words " * 900, 1),)
    assert in_pieces(long, 20, PRICES) == (long, (0,))
    assert in_pieces((UserTurn((Text(""),)),), ROOM, PRICES)[1] == (0,)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(conversations(8), st.integers(100, 900), st.booleans())
def test_L5_whatever_is_cut_each_row_is_stood_for_once(units: tuple[Unit, ...], room: int, newest: bool) -> None:
    pieces, origins = in_pieces(units, room, PRICES, newest=newest)
    assert len(pieces) == len(origins) and list(origins) == sorted(origins)
    assert [piece.span for piece in pieces if piece.span] == [unit.span for unit in units if unit.span]
