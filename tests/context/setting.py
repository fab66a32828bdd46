"""One run's context over a Host that counts its own way, and summarisers with a script."""

from __future__ import annotations

from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint
from runner.context.compaction import Context, Fitted, View, Wishes
from runner.context.meter import Meter
from runner.context.summary import Summarise, SummaryReply
from runner.conversation.request import Request
from runner.conversation.units import System, Text, Unit, UserTurn
from runner.host.errors import ModelFailed, ModelTrouble
from tests.context.conversations import assistant, ruler, user

SYSTEM = System((Text("You are a helpful assistant."),))
GOOD = "Goal:\n- finish the migration\nFacts and identifiers:\n- ticket OPS-4471"
SMALL = Budget.of(8_000, 16_384)


class Host:
    """Counts `factor` times the local price of everything, as another tokenizer would."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.ruler = ruler()
        self.counts = 0

    def price(self, request: Request) -> int:
        units = sum(map(self.ruler.unit, request.units))
        fixed = self.ruler.system(request.system) if request.system != System() else 0
        return int((units + fixed + self.ruler.tools(request.tools)) * self.factor) + 3

    async def count(self, model: str, request: Request) -> int:
        self.counts += 1
        return self.price(request)


class Model:
    """A summariser with a script: each entry is a text, a reply or a failure; the last one repeats."""

    def __init__(self, *script: str | SummaryReply | ModelTrouble | ModelFailed) -> None:
        self.script = list(script)
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> SummaryReply:
        self.asked.append(request)
        entry = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(entry, ModelTrouble):
            raise ModelFailed("s", entry, "scripted")
        if isinstance(entry, ModelFailed):
            raise entry
        return SummaryReply(entry) if isinstance(entry, str) else entry


class Setting:
    """A context with its Host, its models and its log."""

    def __init__(
        self, *models: Model, factor: float = 1.0, checkpoint: Checkpoint | None = None, durable: bool = True
    ) -> None:
        self.host, self.models, self.lines = Host(factor), models, list[str]()
        summarisers: list[Summarise] = list(models)
        self.context = Context(
            meter=Meter(self.host.count),
            ruler=ruler(),
            wishes=Wishes(20_000, 8_000),
            summarisers=summarisers,
            now=lambda: 100.0,
            log=self.lines.append,
            checkpoint=checkpoint,
            durable=durable,
        )

    async def fit(self, view: View, budget: Budget = SMALL, *, visible: bool = False, model: str = "m") -> Fitted:
        fitted = await self.context.fit(view, model=model, budget=budget, visible=visible)
        assert self.host.price(fitted.request) <= budget.input
        assert fitted.tokens <= budget.input
        assert isinstance(fitted.request.units[0], UserTurn)
        return fitted


def history(turns: int, words: int = 60) -> tuple[Unit, ...]:
    """`turns` exchanges as transcript rows 1, 2, 3, …"""
    units: list[Unit] = []
    for number in range(turns):
        units.append(user(f"question {number} " + "some words " * words, 2 * number + 1))
        units.append(assistant("answer " * words, 2 * number + 2))
    return tuple(units)


def view(*units: Unit) -> View:
    return View(SYSTEM, units, question=len(units) - 1)
