"""Conversations to cut: generated ones, and a real coding session."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from hypothesis import strategies as st

from runner.context.tokens import Ruler, Tokenizer, build_encoding
from runner.conversation.units import AssistantTurn, Image, Part, Span, Text, ToolCall, ToolResult, Unit, UserTurn

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
