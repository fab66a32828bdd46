"""F2–F7 and Q1 together: one run's context over a Host that counts its own way, and models that fail."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint, read, write
from runner.context.compaction import Context, Fitted, View, Wishes
from runner.context.meter import CountFailed, Meter
from runner.context.summarisers import Bounds, Scribes, Spent, Waiting
from runner.context.summary import CLOSING, OPENING, Material, SummaryReply
from runner.context.tokens import Prices, Ruler, Tokenizer
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Span, System, Text, Unit, UserTurn
from runner.host.errors import HostCallFailed, HostFailure, InputTooLarge, ModelFailed, ModelTrouble
from tests.context.conversations import (
    GOOD,
    SMALL,
    SYSTEM,
    Model,
    Setting,
    assistant,
    history,
    ruler,
    session,
    tool_turn,
    user,
    view,
)


async def test_F2_a_request_within_the_budget_costs_one_count_and_no_compaction() -> None:
    setting = Setting(Model(GOOD))
    fitted = await setting.fit(view(*history(3), user("now")))
    assert setting.host.counts == 1
    assert setting.context.spent.compactions == 0
    assert fitted.request.system == SYSTEM
    assert setting.context.checkpoint is None


async def test_F3_over_budget_the_older_part_becomes_the_last_block_of_the_system_message() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    units = (*history(60), user("the newest question"))
    fitted = await setting.fit(view(*units))
    assert fitted.request.system.parts == SYSTEM.parts
    block = fitted.request.system.summary or ""
    assert block.startswith(OPENING) and block.endswith(CLOSING) and "OPS-4471" in block
    assert fitted.request.units[-1] is units[-1]
    assert 1 < len(fitted.request.units) < len(units)
    assert (setting.context.spent.summaries, setting.host.counts) == (1, 3)
    assert model.asked[0].tools == ()


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.6, 2.5])
async def test_F2_the_hosts_own_way_of_counting_decides(factor: float) -> None:
    setting = Setting(Model(GOOD), factor=factor)
    await setting.fit(view(*history(60), user("now")))
    assert setting.host.counts <= 3


async def test_F6_the_checkpoint_covers_what_left_the_conversation_and_the_tail_starts_after_it() -> None:
    setting = Setting(Model(GOOD))
    fitted = await setting.fit(view(*history(60), user("now")))
    made = setting.context.checkpoint
    assert made is not None and made.covers_until is not None
    first = fitted.view.units[0].span
    assert first is not None and int(first.first) == int(made.covers_until) + 1
    assert made.summary.endswith(GOOD) and made.time == 100.0


async def test_F5_an_unusable_reply_goes_to_the_next_model_and_then_to_the_digest() -> None:
    bad, worse = Model("<think>only a thought</think>"), Model(SummaryReply(GOOD, called=True))
    good = Model(GOOD)
    setting = Setting(bad, worse, good)
    await setting.fit(view(*history(60), user("now")))
    assert setting.context.summary.endswith(GOOD)
    setting = Setting(bad, worse, Model(ModelTrouble.TIMEOUT))
    await setting.fit(view(*history(60), user("now")))
    assert setting.context.spent.digests == 1
    assert setting.context.summary.startswith("Goal:")
    assert any("tool call" in line for line in setting.lines)


async def test_F5_without_any_model_the_digest_stands_in_and_its_rows_stay_in_the_gap() -> None:
    setting = Setting()
    await setting.fit(view(*history(60), user("now")))
    made = setting.context.checkpoint
    assert made is not None and made.gaps
    assert made.gaps[0].before == str(int(made.covers_until or "0") + 1)


async def test_F5_before_visible_text_at_most_one_summary_is_asked() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    fitted = await setting.fit(view(*history(60), user("go")))
    for number in range(30):
        more = tool_turn("row of data 12345\n" * 60, number, text="I look. " * 30)
        fitted = await setting.fit(View(SYSTEM, (*fitted.view.units, more), question=fitted.view.question))
    assert len(model.asked) == 1
    assert setting.context.spent.digests > 0


async def test_F3_the_question_stays_through_a_hundred_tool_rounds_in_a_small_window() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    question = user("the question of this run")
    fitted = await setting.fit(view(*history(10), question))
    for number in range(100):
        more = tool_turn(f"finding {number}. " * 80, number, text="I look. " * 20)
        fitted = await setting.fit(
            View(SYSTEM, (*fitted.view.units, more), question=fitted.view.question), visible=True
        )
        assert any(unit is question for unit in fitted.request.units)
        assert fitted.request.units[-1] is more
    assert len(model.asked) <= 20
    assert setting.host.counts <= 101 + 3 * setting.context.spent.compactions


async def test_Q1_a_hundred_results_of_20000_characters_need_no_more_than_three_summaries() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    budget = Budget.of(200_000, 16_384)
    fitted = await setting.fit(view(user("go")), budget)
    for number in range(100):
        more = tool_turn(f"{number} data row and some words\n" * 620, number)
        fitted = await setting.fit(
            View(SYSTEM, (*fitted.view.units, more), question=fitted.view.question), budget, visible=True
        )
    assert len(model.asked) <= 3
    assert setting.host.counts <= 130


WIDE = Budget.of(200_000, 16_384)


async def folded(setting: Setting, fitted: Fitted, budget: Budget = WIDE) -> bool:
    """The fold behind an answer, where nobody waits."""
    assert setting.context.is_due(fitted.view, budget, fitted.tokens)
    return await setting.context.fold(fitted.view, budget, fitted.tokens, waiting=Waiting.NOBODY, seconds=None)


async def test_L1_rows_that_leave_the_fetch_limit_are_sent_as_they_are_and_folded_behind_the_answer() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    units = (*history(40), user("now"))
    fitted = await setting.fit(View(SYSTEM, units, question=len(units) - 1, leaving=30), WIDE)
    assert fitted.request.units == units and model.asked == []
    assert await folded(setting, fitted)
    assert setting.context.checkpoint is not None
    assert setting.context.checkpoint.covers_until == "30"
    assert (setting.host.counts, len(model.asked)) == (1, 1)


async def test_L1_nothing_is_due_where_another_turn_fits_and_a_fold_is_where_it_does_not() -> None:
    setting = Setting(Model(GOOD))
    few, many = await setting.fit(view(*history(10), user("now"))), await setting.fit(view(*history(28), user("now")))
    long = replace(many.view, units=(*many.view.units[:-1], user("a long question " * 200), assistant("so " * 300)))
    assert not setting.context.is_due(few.view, SMALL, few.tokens)
    assert not setting.context.is_due(many.view, SMALL, many.tokens)
    assert setting.context.is_due(long, SMALL, many.tokens)


async def test_F6_a_gap_is_shown_while_there_is_room_and_folded_with_the_summary_so_far() -> None:
    model = Model(GOOD + "\n- port 5433")
    base = Checkpoint(GOOD, "41", "60", ())
    setting = Setting(model, checkpoint=base)
    older = history(20, words=5)
    fitted = await setting.fit(View(SYSTEM, (user("now"),), question=0, before=older))
    assert fitted.request.units[: len(older)] == older and model.asked == []
    assert await folded(setting, fitted, SMALL)
    text = model.asked[0].units[0]
    assert isinstance(text, UserTurn)
    assert text.text().index("question 0") < text.text().index("OPS-4471")
    assert "5433" in setting.context.summary
    assert setting.context.checkpoint is not None
    assert (setting.context.checkpoint.covers_from, setting.context.checkpoint.covers_until) == ("1", "60")


async def test_L2_of_a_gap_the_newest_turns_are_shown_that_leave_room() -> None:
    setting = Setting(Model(GOOD), checkpoint=Checkpoint(GOOD, "801", "900", ()))
    older = history(60)
    fitted = await setting.fit(View(SYSTEM, (user("now"),), question=0, before=older))
    shown = fitted.request.units[:-1]
    assert shown and shown == older[-len(shown) :]
    assert 0.7 * SMALL.input < fitted.tokens <= SMALL.input


async def test_L4_beside_a_summary_what_people_said_last_stands_word_for_word_as_user_turns() -> None:
    setting = Setting(Model(GOOD))
    fitted = await setting.fit(view(*history(60), user("now")))
    tail = next(place for place, unit in enumerate(fitted.request.units) if unit.span is not None)
    *said, between = fitted.request.units[:tail]
    assert said and all(isinstance(unit, UserTurn) for unit in said)
    assert isinstance(between, AssistantTurn) and not between.calls
    texts = "\n\n".join(unit.text() for unit in said if isinstance(unit, UserTurn)).split("\n\n")
    until = int((setting.context.checkpoint or Checkpoint()).covers_until or 0) // 2
    assert texts == [
        unit.text() for unit in history(60)[2 * (until - len(texts)) : 2 * until : 2] if isinstance(unit, UserTurn)
    ]
    assert setting.host.ruler.text("\n".join(texts)) <= SMALL.input // 10
    known = setting.context.checkpoint
    assert known is not None and known.said == tuple(texts) and read(write(known)) == known


async def test_L4_the_next_run_has_them_too_and_none_that_is_too_long() -> None:
    said = ("my name is Ann", "a very long paste " * 2_000, "I live in Oslo")
    setting = Setting(checkpoint=Checkpoint(GOOD, "1", "9", said=said))
    fitted = await setting.fit(view(*history(60), user("now")))
    turns = [unit.text() for unit in fitted.request.units if isinstance(unit, UserTurn)]
    assert not any("paste" in text for text in turns)


async def test_L6_somebody_waits_no_longer_than_the_limit_and_no_other_model_is_asked() -> None:
    async def hangs(request: Request) -> SummaryReply:
        asked.append(request)
        await asyncio.sleep(60)
        return SummaryReply(GOOD)

    asked: list[Request] = []
    setting = Setting()
    context = Context(
        meter=Meter(setting.host.count),
        ruler=ruler(),
        wishes=Wishes(20_000, 8_000),
        summarisers=[hangs, hangs],
        now=lambda: 0.0,
        log=setting.lines.append,
        patience=lambda: 0.4,
    )
    async with asyncio.timeout(5):
        await context.fit(view(*history(60), user("now")), model="m", budget=SMALL, visible=False)
    assert (len(asked), context.spent.digests) == (1, 1)
    again = Setting(Model(GOOD), checkpoint=context.checkpoint)
    await again.fit(view(*history(60), user("now")))
    assert again.models[0].asked == []
    later = Setting(Model(GOOD), checkpoint=again.context.checkpoint)
    await later.fit(view(*history(60), user("now")))
    assert len(later.models[0].asked) == 1


async def test_F6_a_gap_that_no_model_can_fold_leaves_summary_and_gap_as_they_are() -> None:
    base = Checkpoint(GOOD, "41", "60", ())
    setting = Setting(Model(ModelTrouble.TIMEOUT), checkpoint=base)
    await setting.fit(View(SYSTEM, (user("now"),), question=0, before=history(20, words=5)))
    assert setting.context.checkpoint is not None
    assert replace(setting.context.checkpoint, notes={}) == base


async def test_F6_without_state_nothing_is_left_to_later_runs() -> None:
    model = Model(GOOD)
    setting = Setting(model, durable=False)
    await setting.fit(view(*history(400), user("now")))
    shown = model.asked[0].units[0]
    assert isinstance(shown, UserTurn)
    assert "earlier steps, shortened" in shown.text()
    assert setting.context.checkpoint is None


async def test_C7_after_a_refusal_the_next_request_is_at_most_half_of_what_was_counted() -> None:
    setting = Setting(Model(GOOD))
    units = (*history(30), user("now"))
    fitted = await setting.fit(view(*units))
    tighter = SMALL.tighter(fitted.tokens)
    again = await setting.fit(fitted.view, tighter)
    assert again.tokens <= fitted.tokens // 2
    setting.context.learn("m", fitted.tokens)
    assert setting.context.checkpoint is not None
    assert setting.context.checkpoint.windows == {"m": fitted.tokens}


async def test_F7_the_floor_above_the_budget_ends_once_naming_part_and_setting() -> None:
    model = Model(GOOD)
    setting = Setting(model)
    huge = System((Text("rule and regulation " * 6_000),))
    with pytest.raises(InputTooLarge, match=r"system prompt .* `context-window-tokens`"):
        await setting.context.fit(View(huge, (user("hi"),), question=0), model="m", budget=SMALL, visible=False)
    tools = tuple(ToolSpec(f"tool{n}", "what it does " * 200, {"type": "object"}) for n in range(40))
    with pytest.raises(InputTooLarge, match="list of tools"):
        await setting.context.fit(
            View(SYSTEM, (user("hi"),), tools, question=0), model="m", budget=SMALL, visible=False
        )
    assert model.asked == []
    assert setting.host.counts <= 4


async def test_F3_a_summary_made_for_a_larger_window_is_shortened_for_a_smaller_one() -> None:
    long = "Facts and identifiers:\n" + "\n".join(
        f"- order {number} was sent to depot D-{number}" for number in range(900)
    )
    setting = Setting(Model(GOOD), checkpoint=Checkpoint(long, "1", "900"))
    fitted = await setting.fit(view(user("where is order 899?")))
    assert "D-899" in (fitted.request.system.summary or "")
    assert setting.context.checkpoint == Checkpoint(long, "1", "900")


async def test_F7_a_host_that_counts_far_more_than_any_plan_ends_in_one_error_not_in_a_loop() -> None:
    setting = Setting(Model(GOOD))

    async def absurd(model: str, request: Request) -> int:
        setting.host.counts += 1
        return 1_000_000

    context = Context(
        meter=Meter(absurd),
        ruler=ruler(),
        wishes=Wishes(20_000, 8_000),
        summarisers=list(setting.models),
        now=lambda: 0.0,
        log=setting.lines.append,
    )
    with pytest.raises(InputTooLarge):
        await context.fit(view(*history(5), user("now")), model="m", budget=SMALL, visible=False)
    assert setting.host.counts <= 4
    assert len(setting.models[0].asked) <= 1


async def test_F2_a_failed_count_is_the_models_failure_and_the_next_model_goes_on() -> None:
    setting = Setting(Model(GOOD))
    good = setting.host.count

    async def failing(model: str, request: Request) -> int:
        if model == "m":
            raise HostCallFailed("count_tokens", HostFailure.TIMEOUT, "late")
        return await good(model, request)

    setting.context._meter = Meter(failing)
    with pytest.raises(CountFailed):
        await setting.context.fit(view(user("hi")), model="m", budget=SMALL, visible=False)
    await setting.fit(view(user("hi")), model="n")


async def test_F6_cursors_that_are_no_numbers_only_cost_the_checkpoint() -> None:
    setting = Setting(Model(GOOD))
    units = tuple(
        UserTurn(unit.parts, Span("opaque", "opaque")) if isinstance(unit, UserTurn) else unit for unit in history(60)
    )
    await setting.fit(view(*units, user("now")))
    assert setting.context.checkpoint is None
    assert setting.context.summary.endswith(GOOD)


@pytest.mark.parametrize("window", [2_000, 8_000, 32_000, 200_000])
async def test_F3_a_real_session_replayed_turn_by_turn_never_breaks(window: int) -> None:
    budget = Budget.of(window, 16_384)
    model = Model(GOOD)
    setting = Setting(model, factor=1.2)
    units: tuple[Unit, ...] = ()
    question: int | None = None
    for unit in session():
        if isinstance(unit, UserTurn):
            question = len(units)
        units = (*units, unit)
        if question is None:
            continue
        fitted = await setting.fit(View(SYSTEM, units, question=question), budget, visible=True)
        units, question = fitted.view.units, fitted.view.question
        for kept in units:
            assert not isinstance(kept, AssistantTurn) or len(kept.calls) == len(kept.results)
    spent = setting.context.spent
    assert setting.host.counts <= len(session()) + 4 * spent.compactions + 2
    assert spent.summaries + spent.digests <= spent.compactions * 2


@pytest.mark.parametrize(("share", "open_rows"), [(0.5, False), (0.85, True)])
async def test_F6_rows_that_a_digest_has_no_room_for_beside_the_summary_so_far_stay_in_the_gap(
    share: float, open_rows: bool
) -> None:
    previous = "Facts and identifiers:\n" + "- an older fact with OPS-1\n" * 150
    units: list[Unit] = []
    while sum(ruler().unit(unit) for unit in units) < share * 1_200:
        row = len(units) + 2
        units.append(user(f"fact OPS-{row} said", row) if row % 2 else assistant(f"noted OPS-{row}", row))
    scribes = Scribes([], None, spent=Spent(), note=lambda name, value: None, log=lambda line: None)
    made = await scribes.write(Material(previous, tuple(units)), Bounds(4_000, 1_200, Prices(ruler())), ask=True)
    assert made is not None
    assert bool(made.left) == open_rows and bool(made.told) != open_rows
    assert open_rows or all(f"OPS-{row}" in made.summary for row in range(2, len(units) + 2))


async def test_Q2_texts_are_priced_planned_and_digested_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    inside: list[str] = []
    original = Tokenizer.estimate

    def watched(self: Tokenizer, text: str) -> int:
        if threading.current_thread() is threading.main_thread() and len(text) > 2_000:
            inside.append(text[:40])
        return original(self, text)

    monkeypatch.setattr(Tokenizer, "estimate", watched)
    fresh = Ruler(Tokenizer(None))

    async def count(model: str, request: Request) -> int:
        return sum(len(unit.text()) if isinstance(unit, UserTurn) else len(unit.text) for unit in request.units) // 3

    context = Context(
        meter=Meter(count),
        ruler=fresh,
        wishes=Wishes(20_000, 8_000),
        summarisers=[Model(ModelTrouble.TIMEOUT)],
        now=lambda: 0.0,
        log=lambda _: None,
    )
    await context.fit(view(*history(80, words=300), user("now")), model="m", budget=SMALL, visible=False)
    assert context.spent.digests == 1
    assert inside == []


async def compacted(setting: Setting) -> Checkpoint:
    """One run in which something has to be folded; what it would remember."""
    await setting.fit(view(*history(60), user("now")))
    made = setting.context.checkpoint
    assert made is not None
    return made


async def test_F5_a_model_that_never_writes_a_summary_is_asked_ever_more_seldom() -> None:
    model, checkpoint, asked = Model("ok"), None, []
    for _ in range(10):
        before = len(model.asked)
        checkpoint = read(write(await compacted(Setting(model, checkpoint=checkpoint))))
        asked.append(len(model.asked) - before)
    assert asked == [1, 1, 0, 1, 0, 0, 0, 1, 0, 0]


async def test_F5_one_summary_makes_up_for_all_failures() -> None:
    whole = GOOD + "".join(f"\n- answer {number} was given in full" for number in range(100))
    model = Model("ok", "ok", whole, "ok", whole)
    checkpoint, asked = None, []
    for _ in range(6):
        before = len(model.asked)
        checkpoint = read(write(await compacted(Setting(model, checkpoint=checkpoint))))
        asked.append(len(model.asked) - before)
    assert asked == [1, 1, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "refusal", [ModelTrouble.TIMEOUT, ModelFailed("s", ModelTrouble.OTHER, "Model request failed: 上下文长度超限")]
)
async def test_F5_a_summary_that_took_too_long_or_was_too_long_is_asked_for_less_the_next_time(
    refusal: ModelTrouble | ModelFailed,
) -> None:
    model = Model(refusal, GOOD)
    first = read(write(await compacted(Setting(model))))
    if refusal is ModelTrouble.TIMEOUT:
        # In the next run nobody waits for one (L6).
        first = read(write(await compacted(Setting(Model(GOOD), checkpoint=first))))
    await compacted(Setting(model, checkpoint=first))
    sizes = [len(str(request.units[0])) for request in model.asked]
    assert sizes[1] < 0.7 * sizes[0]


def test_C7_a_refusal_of_what_every_model_takes_does_not_undo_what_is_known() -> None:
    setting = Setting(checkpoint=Checkpoint(windows={"m": 6_000}))
    setting.context.learn("m", 300)
    assert setting.context.checkpoint == Checkpoint(windows={"m": 6_000})
