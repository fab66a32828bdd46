"""F6 as a whole: hundreds of turns with failures of every kind, and no row that is nowhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

import pytest

from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint, order, read
from runner.context.compaction import Context, View, Wishes
from runner.context.coverage import leading
from runner.context.meter import Meter
from runner.context.paging import History, PageCall, Paging
from runner.context.summarisers import Waiting
from runner.context.summary import SummaryReply
from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn, Span, System, Text, Unit, UserTurn
from runner.host.errors import HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from runner.host.events import Json
from tests.context.conversations import ruler

SYSTEM = System((Text("You are a helpful assistant."),))
FACT = re.compile(r"KEY-\d+-\d+")


@dataclass(frozen=True)
class Row:
    number: int
    role: str
    text: str

    @property
    def cursor(self) -> str:
        return str(self.number)


def units_of(rows: tuple[Row, ...]) -> tuple[Unit, ...]:
    """Rows as turns, neighbouring rows of people joined; a conversation starts with a person."""
    units: list[Unit] = []
    for row in rows:
        span = Span(row.cursor, row.cursor)
        last = units[-1] if units else None
        if row.role == "assistant":
            if units:
                units.append(AssistantTurn(row.text, span=span))
        elif isinstance(last, UserTurn) and last.span is not None:
            units[-1] = UserTurn((*last.parts, Text(row.text)), Span(last.span.first, row.cursor))
        else:
            units.append(UserTurn((Text(row.text),), span))
    return tuple(units)


@dataclass
class World:
    """One chat: its transcript, its state, and how often each call fails."""

    random: Random
    failures: float
    window: int
    limit: int = 50
    rows: list[Row] = field(default_factory=list)
    state: Json = None
    told: set[str] = field(default_factory=set)
    counts: int = 0
    calls: int = 0
    summaries: int = 0
    prices: dict[int, int] = field(default_factory=dict)

    def fails(self) -> bool:
        return self.random.random() < self.failures

    def say(self, role: str, words: int) -> None:
        number = self.rows[-1].number + self.random.randint(1, 3) if self.rows else 5
        fact = f"KEY-{number}-{self.random.randint(100, 999)}"
        self.rows.append(Row(number, role, f"The key is {fact}. " + "And some more words. " * words))

    def page(self, call: PageCall) -> tuple[tuple[Row, ...], bool]:
        self.calls += 1
        if call.after is not None:
            found = [row for row in self.rows if row.number > int(call.after)]
        else:
            found = [row for row in reversed(self.rows) if call.before is None or row.number < int(call.before)]
        return tuple(found[: call.limit]), len(found) > call.limit

    def history(self, checkpoint: Checkpoint | None, current: Row) -> History[Row]:
        paging: Paging[Row] = Paging(
            checkpoint,
            limit=self.limit,
            room=int(self.window * 2),
            size=lambda row: len(row.text),
            ignore=lambda row: row.number >= current.number,
        )
        while calls := paging.calls():
            for call in calls:
                if self.fails():
                    paging.fail(call)
                else:
                    rows, more = self.page(call)
                    paging.take(call, rows, has_more=more)
        return paging.history()

    async def count(self, model: str, request: Request) -> int:
        self.counts += 1
        local = ruler()
        return int((sum(map(local.unit, request.units)) + local.system(request.system)) * 1.15) + 3

    async def summarise(self, request: Request) -> SummaryReply:
        self.summaries += 1
        (turn,) = request.units
        assert isinstance(turn, UserTurn)
        if self.fails():
            raise ModelFailed("m", ModelTrouble.TIMEOUT, "late")
        if self.fails():
            return SummaryReply(self.random.choice(["", "<think>hm</think>", "Error: 502", "ok"]))
        facts = FACT.findall(turn.text())
        self.told |= set(facts)
        return SummaryReply("Facts and identifiers:\n" + "\n".join(f"- {fact}" for fact in dict.fromkeys(facts)))

    async def load(self) -> Json:
        if self.fails():
            raise HostCallFailed("state_get", HostFailure.TIMEOUT, "late")
        return self.state

    async def store(self, value: Json) -> None:
        if self.fails():
            raise HostCallFailed("state_set", HostFailure.CONNECTION, "gone")
        self.state = value

    async def holds(self, cursor: str) -> bool:
        if self.fails():
            raise HostCallFailed("history_page", HostFailure.TIMEOUT, "late")
        return any(row.cursor == cursor for row in self.rows)

    async def run(self, *, question: Row, snapshot: Json) -> Context:
        """One run up to its answer; `snapshot` is the state as it was when the run began."""
        checkpoint = read(snapshot)
        history = self.history(checkpoint, question)
        units = units_of((*history.leaving, *history.recent, question))
        context = Context(
            meter=Meter(self.count),
            ruler=ruler(),
            wishes=Wishes(20_000, 8_000),
            summarisers=[self.summarise, self.summarise],
            now=lambda: 1.0,
            log=lambda _: None,
            checkpoint=checkpoint,
            unread=history.unread,
            empty=history.empty,
        )
        leaving = leading(units, history.leaving[-1].cursor) if history.leaving else 0
        view = View(
            SYSTEM,
            units,
            question=len(units) - 1,
            leaving=leaving,
            before=units_of(history.older),
            before_span=history.older_span,
        )
        budget = Budget.of(self.window, 16_384)
        before = self.counts
        fitted = await context.fit(view, model="m", budget=budget, visible=False)
        assert fitted.tokens <= budget.input
        assert self.counts - before <= 4
        newest = fitted.request.units[-1]
        assert isinstance(newest, UserTurn) and question.text in newest.text()
        if not context.spent.asked and context.is_due(fitted.view, budget, fitted.tokens):
            await context.fold(fitted.view, budget, fitted.tokens, waiting=Waiting.NOBODY, seconds=None)
        self.told |= set(FACT.findall(context.summary))
        return context

    def check(self) -> Checkpoint | None:
        """No row is nowhere: told, in a recorded gap, or newer than what the checkpoint covers."""
        checkpoint = read(self.state)
        assert (checkpoint is None) == (self.state is None)
        if checkpoint is None or checkpoint.covers_until is None:
            return checkpoint
        until = order(checkpoint.covers_until)
        gaps = [(-1 if gap.after is None else order(gap.after), order(gap.before)) for gap in checkpoint.gaps]
        for row in self.rows:
            in_gap = any(low < row.number < high for low, high in gaps)
            (fact,) = FACT.findall(row.text)
            assert row.number > until or in_gap or fact in self.told, f"row {row.number} is nowhere"
        return checkpoint


async def one_turn(world: World) -> None:
    world.say("user", world.random.randint(0, 25))
    question, snapshot = world.rows[-1], world.state
    contexts = [await world.run(question=question, snapshot=snapshot)]
    if world.random.random() < world.failures:
        # Another run of the chat began at the same time and ends first (J5).
        contexts.insert(0, await world.run(question=question, snapshot=snapshot))
    for context in contexts:
        await context.save(world.load, world.store, world.holds)
    if not world.fails():
        world.say("assistant", world.random.randint(0, 60))
    world.check()


@pytest.mark.parametrize(("seed", "window", "limit"), [(1, 4_000, 50), (2, 8_000, 20), (3, 200_000, 50)])
async def test_F6_500_turns_with_failures_lose_no_row_and_the_gap_shrinks_to_nothing(
    seed: int, window: int, limit: int
) -> None:
    world = World(Random(seed), 0.2, window, limit)
    for _ in range(500):
        await one_turn(world)
    assert read(world.state) is not None
    world.failures = 0.0
    for _ in range(60):
        await one_turn(world)
        checkpoint = world.check()
        if checkpoint is not None and not checkpoint.gaps:
            break
    assert checkpoint is not None and checkpoint.gaps == ()
    assert world.summaries < 2 * 560


async def test_Q1_four_hundred_rows_cold_into_24k_cost_one_summary_and_record_the_gap() -> None:
    world = World(Random(4), 0.0, 24_000)
    for number in range(400):
        world.say("assistant" if number % 2 else "user", 85)
    world.say("user", 2)
    context = await world.run(question=world.rows[-1], snapshot=None)
    await context.save(world.load, world.store, world.holds)
    assert world.summaries == 1
    assert world.calls + world.counts <= 6
    checkpoint = world.check()
    assert checkpoint is not None and checkpoint.gaps[-1].after is None


async def test_F6_a_cold_conversation_of_months_is_folded_run_by_run_until_nothing_is_left() -> None:
    world = World(Random(5), 0.0, 24_000)
    for number in range(400):
        world.say("assistant" if number % 2 else "user", 30)
    reached: list[int] = []
    checkpoint: Checkpoint | None = None
    for _ in range(40):
        await one_turn(world)
        checkpoint = world.check()
        assert checkpoint is not None
        reached.append(sum(order(gap.before) for gap in checkpoint.gaps))
        if not checkpoint.gaps:
            break
    assert reached[-1] == 0
    assert checkpoint is not None
    covered = [row for row in world.rows if row.number <= order(checkpoint.covers_until or "0")]
    assert len(covered) >= 350
    assert all(fact in world.told for row in covered for fact in FACT.findall(row.text))
    assert len(reached) <= 12


async def test_Q1_ten_turns_in_an_8k_window_take_at_most_one_summary_each() -> None:
    world = World(Random(6), 0.0, 8_000)
    for number in range(40):
        world.say("assistant" if number % 2 else "user", 50)
    for _ in range(10):
        before = world.summaries
        await one_turn(world)
        assert world.summaries - before <= 1
    assert world.calls + world.counts + world.summaries <= 60


@pytest.mark.parametrize("seed", range(4))
async def test_F5_a_fact_of_turn_3_still_stands_in_the_request_of_turn_60(seed: int) -> None:
    world = World(Random(seed), 0.1, 8_000)
    fact = f"KEY-{world.random.randint(10, 99)}-{world.random.randint(100, 999)}"
    context = None
    for turn in range(1, 61):
        told = f"Please remember that the vault opens with {fact}. " if turn == 3 else ""
        for role in ("user", "assistant"):
            number = len(world.rows) + 1
            filler = "we talked of this and that, and of other things too. " * world.random.randint(5, 30)
            world.rows.append(Row(number, role, told + filler))
            if role == "user":
                context = await world.run(question=world.rows[-1], snapshot=world.state)
        assert context is not None
        await context.save(world.load, world.store, world.holds)
    assert context is not None
    assert fact in context.summary
    assert world.summaries > 3
