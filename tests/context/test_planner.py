"""F3, F4, F7, E2, L5: what a plan keeps, what gives way first, and how a long unit is cut in pieces."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.context.budget import Budget
from runner.context.pieces import in_pieces
from runner.context.planner import Fixed, Limits, Plan, Step, foldable, is_full, plan, tail_room
from runner.context.reference import bounded, shrunk
from runner.context.tokens import Prices, Ruler, Tokenizer
from runner.context.transcript import render
from runner.conversation.knowledge import reference
from runner.conversation.units import AssistantTurn, Image, Passage, Reference, Text, Unit, UserTurn, newest_user
from runner.host.errors import InputTooLarge
from tests.context.conversations import assistant, conversations, ruler, session, tool_turn, user

# F3, F4, F7: what a plan keeps, and that it is always a legal request within the budget.

PRICES = Prices(ruler())
WINDOWS = (2_000, 8_000, 24_000, 64_000, 128_000, 200_000)


def limits(window: int, *, recent: int = 20_000) -> Limits:
    return Limits(Budget.of(window, 16_384).input, recent, summary=8_000)


def exchange(turns: int, asked: str, answered: str) -> tuple[Unit, ...]:
    units: list[Unit] = []
    for number in range(turns):
        units += [user(f"{asked} {number}"), assistant(answered)]
    return (*units, user("last question"))


def check(units: tuple[Unit, ...], made: Plan, bounds: Limits) -> None:
    assert made.tokens <= bounds.input
    assert made.kept, "nothing is left to ask"
    if newest_user(units) >= 0:
        assert isinstance(made.kept[0], UserTurn)
    for left, right in zip(made.kept, made.kept[1:], strict=False):
        assert not (isinstance(left, UserTurn) and isinstance(right, UserTurn)) or made.step is not Step.SUMMARISE
    for unit in made.kept:
        if isinstance(unit, AssistantTurn):
            assert [call.id for call in unit.calls] == [result.call_id for result in unit.results]
            assert all(isinstance(json.loads(call.arguments), dict) for call in unit.calls)
    held = {id(unit) for unit in made.kept} | {id(unit) for unit in made.older}
    if made.step is Step.SUMMARISE and not made.clipped:
        merged = {id(part) for unit in made.kept if isinstance(unit, UserTurn) for part in unit.parts}
        for unit in units:
            assert id(unit) in held or (isinstance(unit, UserTurn) and id(unit.parts[0]) in merged)


def question_stays(units: tuple[Unit, ...], made: Plan) -> bool:
    newest = units[newest_user(units)]
    assert isinstance(newest, UserTurn)
    kept = {id(part) for unit in made.kept if isinstance(unit, UserTurn) for part in unit.parts}
    return all(id(part) in kept for part in newest.parts)


def test_F3_a_request_within_the_budget_is_left_alone() -> None:
    units = (user("hi"), assistant("hello"), user("and now?"))
    made = plan(units, fixed=Fixed(50), limits=limits(8_000), prices=PRICES)
    assert made.step is Step.KEEP
    assert made.kept is units


def test_F4_stubs_come_first_and_are_often_enough() -> None:
    units: tuple[Unit, ...] = (
        user("look"),
        *(tool_turn("data row 17\n" * 700, number) for number in range(6)),
        assistant("ok"),
        user("so?"),
    )
    made = plan(units, fixed=Fixed(50), limits=limits(12_000), prices=PRICES)
    assert made.step is Step.STUB
    assert not made.older
    assert len(made.kept) == len(units)
    stubbed = [
        unit
        for unit in made.kept
        if isinstance(unit, AssistantTurn) and unit.results and len(unit.results[0].text) < 400
    ]
    assert len(stubbed) >= 4
    assert "characters" in stubbed[0].results[0].text
    assert made.tokens <= limits(12_000).input


def test_F3_the_older_part_goes_and_a_recent_tail_of_whole_turns_stays() -> None:
    units = tuple(
        unit for number in range(60) for unit in (user(f"question {number} " * 30), assistant("answer " * 60))
    )
    units = (*units, user("last question"))
    bounds = limits(8_000)
    made = plan(units, fixed=Fixed(200), limits=bounds, prices=PRICES)
    assert made.step is Step.SUMMARISE
    assert units == made.older + made.kept
    assert isinstance(made.kept[0], UserTurn)
    assert 0 < PRICES.units(made.kept) <= tail_room(bounds, Fixed(200))


def test_F3_the_recent_tail_is_bounded_by_its_setting() -> None:
    units = exchange(200, "q " * 200, "a " * 200)
    made = plan(units, fixed=Fixed(200), limits=limits(64_000, recent=3_000), prices=PRICES)
    assert made.step is Step.SUMMARISE
    assert PRICES.units(made.kept) <= 3_000


def test_F3_in_a_long_tool_run_the_question_and_the_newest_results_stay() -> None:
    steps = tuple(tool_turn(f"finding {number}. " * 60, number, text="thinking aloud " * 40) for number in range(60))
    units: tuple[Unit, ...] = (user("old"), assistant("old answer"), user("the question of this run"), *steps)
    made = plan(units, fixed=Fixed(200), limits=limits(8_000), prices=PRICES)
    assert made.step is Step.SUMMARISE
    assert made.kept[0] is units[2]
    assert made.kept[-1] is units[-1]
    assert made.older[:2] == units[:2]


def test_F3_input_that_came_during_the_run_is_joined_to_the_question_when_the_steps_between_go() -> None:
    steps = tuple(tool_turn("x y z " * 160, number, text="words " * 200) for number in range(20))
    units: tuple[Unit, ...] = (user("the question"), *steps[:19], user("also this"), steps[19])
    made = plan(units, fixed=Fixed(100), limits=limits(2_500), prices=PRICES, question=0)
    first = made.kept[0]
    assert isinstance(first, UserTurn)
    assert first.parts == (Text("the question"), Text("also this"))


def test_F3_the_newest_input_alone_too_large_is_cut_visibly_head_and_tail() -> None:
    text = "BEGIN " + "filler words here " * 5_000 + " END"
    made = plan((user(text),), fixed=Fixed(100), limits=limits(4_000), prices=PRICES)
    (turn,) = made.kept
    assert isinstance(turn, UserTurn)
    assert turn.text().startswith("BEGIN") and turn.text().endswith("END")
    assert "characters cut" in turn.text()
    assert made.clipped and made.tokens <= limits(4_000).input


def test_E2_retrieved_text_before_the_question_is_cut_before_the_question() -> None:
    turn = UserTurn((Text("chunk of knowledge " * 4_000), Text("my own words")))
    made = plan((turn,), fixed=Fixed(100), limits=limits(4_000), prices=PRICES)
    (kept,) = made.kept
    assert isinstance(kept, UserTurn)
    assert kept.parts[1] == Text("my own words")


def test_F3_newest_results_too_large_together_are_cut_each_with_head_and_tail() -> None:
    from runner.conversation.units import ToolCall, ToolResult

    calls = tuple(ToolCall(str(n), "read", "{}") for n in range(8))
    results = tuple(ToolResult(str(n), "read", f"head{n} " + "z y x " * 3_000 + f"tail{n}") for n in range(7))
    results += (ToolResult("7", "read", "short"),)
    made = plan((user("q"), AssistantTurn("", calls, results)), fixed=Fixed(100), limits=limits(8_000), prices=PRICES)
    last = made.kept[-1]
    assert isinstance(last, AssistantTurn)
    assert last.results[7].text == "short"
    for number, result in enumerate(last.results[:7]):
        assert result.text.startswith(f"head{number}") and result.text.endswith(f"tail{number}")
    assert made.tokens <= limits(8_000).input


def test_F7_a_system_prompt_above_the_budget_is_named_with_its_setting() -> None:
    with pytest.raises(InputTooLarge) as caught:
        plan((user("hi"),), fixed=Fixed(5_000, 100), limits=limits(4_000), prices=PRICES)
    assert caught.value.part == "system prompt"
    assert caught.value.setting == "context-window-tokens"


def test_F7_tool_schemas_above_the_budget_are_named() -> None:
    with pytest.raises(InputTooLarge, match="list of tools"):
        plan((user("hi"),), fixed=Fixed(50, 9_000), limits=limits(4_000), prices=PRICES)


def test_F7_pictures_that_leave_no_room_for_words_end_in_one_clear_error() -> None:
    turn = UserTurn((*(Image(url=f"https://e.org/{n}.png") for n in range(9)), Text("what is this?")))
    with pytest.raises(InputTooLarge, match="newest message"):
        plan((turn,), fixed=Fixed(50), limits=limits(4_000), prices=PRICES)


def folded(units: tuple[Unit, ...], question: int, *, full: bool, leaving: int = 0) -> int:
    return foldable(units, question, fixed=Fixed(50), limits=limits(8_000), prices=PRICES, full=full, leaving=leaving)


def test_L1_rows_that_leave_the_fetch_limit_are_folded_up_to_the_next_turn_of_a_person() -> None:
    units = exchange(20, "q", "a")
    assert plan(units, fixed=Fixed(50), limits=limits(200_000), prices=PRICES, leaving=9).step is Step.KEEP
    assert folded(units, 38, full=False, leaving=9) == 10
    assert folded(units, 38, full=False) == 0
    assert folded(units, 6, full=False, leaving=9) == 6, "never what belongs to this run"


def test_L1_a_full_request_is_folded_to_a_recent_tail_of_whole_turns() -> None:
    units = exchange(30, "question " * 60, "answer " * 60)
    count = folded(units, 58, full=True)
    assert 30 < count < 58 and isinstance(units[count], UserTurn)
    assert PRICES.units(units[count:]) <= tail_room(limits(8_000), Fixed(50))


@pytest.mark.parametrize(
    ("tokens", "turn", "full"), [(5_000, 900, False), (5_100, 900, False), (5_101, 900, True), (6_000, 0, False)]
)
def test_L10_one_threshold_says_when_to_compact(tokens: int, turn: int, full: bool) -> None:
    assert is_full(tokens, turn, 6_000) is full


def test_L2_what_a_summary_did_not_take_in_comes_back_to_its_place() -> None:
    units = exchange(60, "question " * 60, "answer " * 60)
    made = plan(units, fixed=Fixed(200), limits=limits(8_000), prices=PRICES)
    for count in (0, 1, 7, len(made.older)):
        kept, question = made.with_rest(count)
        assert kept == units[len(made.older) - count :]
        assert kept[question] is units[-1]


def test_L2_steps_of_this_run_come_back_behind_its_question() -> None:
    steps = tuple(tool_turn("row of data 12345 " * 60, number, text="I look. " * 60) for number in range(30))
    units = (*exchange(5, "question " * 60, "answer " * 60), *steps)
    made = plan(units, fixed=Fixed(200), limits=limits(8_000), prices=PRICES)
    kept, question = made.with_rest(3)
    assert kept == (units[10], *made.older[-3:], *made.kept[1:])
    assert kept[question] is units[10]


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    conversations(),
    st.sampled_from(WINDOWS),
    st.integers(0, 1_200),
    st.sampled_from((0.5, 1.0, 1.7)),
    st.integers(0, 9),
)
def test_F3_every_plan_is_legal_and_within_the_budget_or_says_what_is_too_large(
    units: tuple[Unit, ...], window: int, system: int, scale: float, leaving: int
) -> None:
    prices, bounds = Prices(ruler(), scale), limits(window)
    try:
        made = plan(units, fixed=Fixed(system, 100), limits=bounds, prices=prices, leaving=leaving)
    except InputTooLarge as error:
        assert error.setting and error.part
        return
    check(units, made, bounds)
    assert made.clipped or question_stays(units, made)


@pytest.mark.parametrize("window", WINDOWS)
def test_F3_a_real_session_cut_at_every_point_always_gives_a_legal_plan(window: int) -> None:
    units, bounds, shared = session(), limits(window), PRICES
    for end in range(1, len(units) + 1):
        part = units[:end]
        made = plan(part, fixed=Fixed(300, 200), limits=bounds, prices=shared)
        check(part, made, bounds)
        if newest_user(part) >= 0:
            assert made.clipped or question_stays(part, made)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(conversations(), st.sampled_from((4_000, 16_000)))
def test_F7_a_plan_planned_again_needs_no_second_compaction(units: tuple[Unit, ...], window: int) -> None:
    bounds = limits(window)
    made = plan(units, fixed=Fixed(200), limits=bounds, prices=PRICES)
    again = plan(made.kept, fixed=Fixed(200), limits=bounds, prices=PRICES, summary=made.summary_room)
    assert again.step is Step.KEEP


# E2: knowledge gives way before the conversation does.

ESTIMATED = Prices(Ruler(Tokenizer(None)))


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
    assert bounded(units, 0, 100_000, ESTIMATED) is units


@pytest.mark.parametrize("free", [1_000, 2_000, 3_000, 4_000])
def test_E2_otherwise_it_is_cut_to_its_share_best_first_and_the_words_stay(free: int) -> None:
    part = knowledge(10)
    (unit,) = bounded((turn(part),), 0, free, ESTIMATED)
    assert isinstance(unit, UserTurn)
    left = part_of(unit)
    assert left is not None and ESTIMATED.part(left) <= free // 4
    assert [passage.source for passage in left.passages] == [f"source {place}" for place in range(len(left.passages))]
    assert (unit.parts[0], unit.parts[-1]) == (Text("earlier"), Text("question"))


def test_E2_it_goes_altogether_where_the_question_needs_all() -> None:
    (unit,) = bounded((turn(knowledge(3), "word " * 4_000),), 0, 4_000, ESTIMATED)
    assert part_of(unit) is None


def test_E2_one_long_passage_is_cut_visibly_rather_than_lost() -> None:
    smaller = shrunk(knowledge(1, words=5_000), 600, ESTIMATED)
    assert smaller is not None and ESTIMATED.part(smaller) <= 600
    assert "left out" in smaller.text or "cut" in smaller.text


def test_E2_without_knowledge_or_question_nothing_changes() -> None:
    units = (UserTurn((Text("hi"),)),)
    assert bounded(units, 0, 0, ESTIMATED) is units
    assert bounded(units, None, 0, ESTIMATED) is units


@pytest.mark.parametrize("free", [2_000, 4_000, 8_000])
def test_E2_the_knowledge_of_follow_ups_shares_the_bound_and_the_newest_words_come_first(free: int) -> None:
    first, second = turn(knowledge(10)), turn(knowledge(10), "follow-up")
    units = (first, UserTurn((Text("in between"),)), second)
    cut = bounded(units, 0, free, ESTIMATED)
    kept = [part_of(unit) for unit in cut]
    assert kept[2] is not None
    assert sum(ESTIMATED.part(part) for part in kept if part is not None) <= free // 4
    assert kept[0] is None or len(kept[0].passages) <= len(kept[2].passages)
    assert cut[1] is units[1]
    assert bounded(units, 0, 100_000, ESTIMATED) is units


def test_E2_a_summariser_never_reads_it() -> None:
    assert "passage" not in render(turn(knowledge(1)))


# L5: a long unit in pieces, none of it left out, and its row covered by the last piece told alone.

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
