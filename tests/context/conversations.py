"""Conversations to cut, generated ones and a real coding session, and a run's context over a Host with a script."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from hypothesis import strategies as st

from runner.context.budget import Budget
from runner.context.checkpoint import Checkpoint
from runner.context.compaction import Context, Fitted, View, Wishes
from runner.context.meter import Meter
from runner.context.summary import Summarise, SummaryReply
from runner.context.tokens import Ruler, Tokenizer, build_encoding
from runner.conversation.request import Request
from runner.conversation.units import (
    AssistantTurn,
    Image,
    Part,
    Span,
    System,
    Text,
    ToolCall,
    ToolResult,
    Unit,
    UserTurn,
)
from runner.host.errors import ModelFailed, ModelTrouble

# Conversations to cut: generated ones, and a real coding session.

SESSION = Path(__file__).parent / "cases" / "history_pi_large_session.jsonl.xz"
"""914 messages of a public session with the coding agent pi: 373 results of tools, 21 aborted turns."""


class Remembering(Tokenizer):
    """The real tokenizer, which prices a text it has seen before from memory: the session is cut thousands of times."""

    def __init__(self) -> None:
        super().__init__(build_encoding())
        self.estimate = lru_cache(maxsize=50_000)(super().estimate)  # type: ignore[method-assign]


@cache
def tokenizer() -> Tokenizer:
    return Remembering()


def ruler() -> Ruler:
    return Ruler(tokenizer())


def user(text: str, row: int | None = None) -> UserTurn:
    return UserTurn((Text(text),), None if row is None else Span(str(row), str(row)))


def assistant(text: str, row: int | None = None) -> AssistantTurn:
    return AssistantTurn(text, span=None if row is None else Span(str(row), str(row)))


def tool_turn(result: str, number: int = 0, *, text: str = "") -> AssistantTurn:
    name = f"call_{number}"
    return AssistantTurn(text, (ToolCall(name, "read", '{"path": "a.txt"}'),), (ToolResult(name, "read", result),))


@cache
def session() -> tuple[Unit, ...]:
    """The real session as units; its publisher cut texts to 3,000 characters."""
    with lzma.open(SESSION, "rt", encoding="utf-8") as lines:
        return tuple(_units([json.loads(line) for line in lines]))


def _units(rows: list[dict[str, object]]) -> Iterator[Unit]:
    results = {row["tool_call_id"]: str(row["content"]) for row in rows if row["role"] == "tool"}
    previous: UserTurn | None = None
    for row in rows:
        text = str(row["content"])
        if row["role"] == "user":
            turn = user(text)
            previous = turn if previous is None else UserTurn(previous.parts + turn.parts)
            continue
        if row["role"] == "assistant" and (text or row.get("tool_calls")):
            if previous is not None:
                yield previous
                previous = None
            yield _reply(text, row.get("tool_calls"), results)


def _reply(text: str, calls: object, results: dict[object, str]) -> AssistantTurn:
    listed = calls if isinstance(calls, list) else []
    pairs = [
        (
            ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"]),
            results.get(call["id"], "aborted"),
        )
        for call in listed
    ]
    return AssistantTurn(
        text, tuple(call for call, _ in pairs), tuple(ToolResult(call.id, call.name, result) for call, result in pairs)
    )


_ALPHABETS = (
    "word and more words ",
    "数据库连接超时请检查配置",
    "0123456789abcdef",
    "👩‍👩‍👧‍👦 fine 🇩🇪",
    "\n\n\t ",
    "}{][;:,.!?",
)


@st.composite
def texts(draw: st.DrawFn, longest: int = 6_000) -> str:
    """Latin, CJK, digits, emoji clusters, white space; short or long."""
    piece = draw(st.sampled_from(_ALPHABETS))
    length = draw(st.integers(1, longest) | st.integers(1, 60))
    return (piece * (length // len(piece) + 1))[:length].strip("\ud800") or "x"


@st.composite
def user_turns(draw: st.DrawFn) -> UserTurn:
    parts: list[Part] = [Text(draw(texts()))]
    if draw(st.booleans()) and draw(st.booleans()):
        parts.insert(0, Image(url="https://example.org/a.png"))
    return UserTurn(tuple(parts))


@st.composite
def assistant_turns(draw: st.DrawFn) -> AssistantTurn:
    count = draw(st.integers(0, 3))
    ids = [f"c{draw(st.integers(0, 10**6))}-{index}" for index in range(count)]
    calls = tuple(ToolCall(name, "tool", json.dumps({"q": draw(texts(400))})) for name in ids)
    results = tuple(ToolResult(name, "tool", draw(texts(9_000))) for name in ids)
    return AssistantTurn(draw(texts(2_000)), calls, results)


@st.composite
def conversations(draw: st.DrawFn, most: int = 12) -> tuple[Unit, ...]:
    """User turns, each with no reply (only the last) or some; ends anywhere inside a run."""
    units: list[Unit] = []
    for number in range(draw(st.integers(1, most))):
        if number:
            units.append(draw(assistant_turns()))
        units.append(draw(user_turns()))
        units.extend(draw(st.lists(assistant_turns(), max_size=3)))
    return tuple(units)


# One run's context over a Host that counts its own way, and summarisers with a script.

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
