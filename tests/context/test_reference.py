"""E2: knowledge gives way before the conversation does."""

from __future__ import annotations

import pytest

from runner.context.reference import bounded, shrunk
from runner.context.tokens import Prices, Ruler, Tokenizer
from runner.context.transcript import render
from runner.conversation.knowledge import reference
from runner.conversation.units import Passage, Reference, Text, UserTurn

PRICES = Prices(Ruler(Tokenizer(None)))


def knowledge(count: int, words: int = 100) -> Reference:
    part = reference([Passage(f"passage {place} " + "word " * words, f"source {place}") for place in range(count)])
    assert part is not None
    return part


def turn(part: Reference, text: str = "question") -> UserTurn:
    return UserTurn((Text("earlier"), part, Text(text)))


def part_of(unit: object) -> Reference | None:
    assert isinstance(unit, UserTurn)
    return next((part for part in unit.parts if isinstance(part, Reference)), None)


def test_E2_knowledge_within_its_share_stays_as_it_is() -> None:
    units = (turn(knowledge(2)),)
    assert bounded(units, 0, 100_000, PRICES) is units


@pytest.mark.parametrize("free", [1_000, 2_000, 3_000, 4_000])
def test_E2_otherwise_it_is_cut_to_its_share_best_first_and_the_words_stay(free: int) -> None:
    part = knowledge(10)
    (unit,) = bounded((turn(part),), 0, free, PRICES)
    assert isinstance(unit, UserTurn)
    left = part_of(unit)
    assert left is not None and PRICES.part(left) <= free // 4
    assert [passage.source for passage in left.passages] == [f"source {place}" for place in range(len(left.passages))]
    assert (unit.parts[0], unit.parts[-1]) == (Text("earlier"), Text("question"))


def test_E2_it_goes_altogether_where_the_question_needs_all() -> None:
    (unit,) = bounded((turn(knowledge(3), "word " * 4_000),), 0, 4_000, PRICES)
    assert part_of(unit) is None


def test_E2_one_long_passage_is_cut_visibly_rather_than_lost() -> None:
    smaller = shrunk(knowledge(1, words=5_000), 600, PRICES)
    assert smaller is not None and PRICES.part(smaller) <= 600
    assert "left out" in smaller.text or "cut" in smaller.text


def test_E2_without_knowledge_or_question_nothing_changes() -> None:
    units = (UserTurn((Text("hi"),)),)
    assert bounded(units, 0, 0, PRICES) is units
    assert bounded(units, None, 0, PRICES) is units


@pytest.mark.parametrize("free", [2_000, 4_000, 8_000])
def test_E2_the_knowledge_of_follow_ups_shares_the_bound_and_the_newest_words_come_first(free: int) -> None:
    first, second = turn(knowledge(10)), turn(knowledge(10), "follow-up")
    units = (first, UserTurn((Text("in between"),)), second)
    cut = bounded(units, 0, free, PRICES)
    kept = [part_of(unit) for unit in cut]
    assert kept[2] is not None
    assert sum(PRICES.part(part) for part in kept if part is not None) <= free // 4
    assert kept[0] is None or len(kept[0].passages) <= len(kept[2].passages)
    assert cut[1] is units[1]
    assert bounded(units, 0, 100_000, PRICES) is units


def test_E2_a_summariser_never_reads_it() -> None:
    assert "passage" not in render(turn(knowledge(1)))
