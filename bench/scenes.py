"""The Hosts and chats that are measured: everything on both sides of the wire in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner

from components.runner.default import DefaultRunner
from tests.host import KnowledgeBase, Model, PassThroughRunner, Reply, TestHost, Tool, ToolCall, manifest_of
from tests.host.box import Box
from tests.host.script import ModelRequest, Scripted
from tests.runs.long_chats import is_summary

COMPONENT = Path(__file__).resolve().parent.parent / "components" / "runner" / "default.yaml"
_SUMMARY = (
    "## Goal\nLook up what was asked for.\n## Constraints\nNone were named.\n## Done\nThe first results are in.\n"
    "## Open\nThe rest of them.\n## Decisions\nGo through them one by one.\n## Facts\nThe results are numbered from 0."
)
MakeRunner = Callable[[], Runner]
Remembered = Sequence[tuple[str, str]]


def ours() -> Runner:
    return DefaultRunner()


def bare() -> Runner:
    return PassThroughRunner()


def bare_without_deltas() -> Runner:
    return PassThroughRunner(deltas=False)


@dataclass(frozen=True)
class Scene:
    """A chat of `says` messages with a Host. `limits`: measure → what ours may need (Q1), for the whole chat."""

    name: str
    replies: Callable[[], Sequence[Scripted]]
    limits: dict[str, float] = field(default_factory=dict)
    tools: Callable[[], list[Tool]] = list
    history: Remembered = ()
    config: dict[str, Any] = field(default_factory=dict)
    knowledge: int = 0
    box: bool = False
    says: int = 1
    for_bare: bool = True

    def host(self, make: MakeRunner, *, threaded: bool = False) -> TestHost:
        models = [Model("m1", default=_speaker(list(self.replies())))]
        bases = [KnowledgeBase(f"base {n}", [f"fact {n} about everything"] * 5) for n in range(self.knowledge)]
        if self.knowledge:
            models.append(Model("rank", rerank=True))
        host = TestHost(
            make(),
            manifest=manifest_of(COMPONENT),
            models=models,
            tools=self.tools(),
            knowledge=bases,
            config=dict(self.config),
            box=Box() if self.box else None,
            threaded_codec=threaded,
        )
        host.remember(*self.history)
        return host


def _speaker(replies: list[Scripted]) -> Callable[[ModelRequest], Reply | str]:
    """A model that knows a request for a summary from a question, and answers questions in order."""

    def speak(request: ModelRequest) -> Reply | str:
        if is_summary(request):
            return _SUMMARY
        reply = replies.pop(0)
        assert not callable(reply)
        return reply

    return speak


def chunks(count: int, **more: Any) -> Reply:
    return Reply("".join(f"word{number:05d} " for number in range(count)), chunks=count, **more)


def rounds(count: int, *, at_once: int = 1) -> list[Scripted]:
    """So many tool rounds, then an answer."""
    calls: list[Scripted] = [
        Reply(tool_calls=[ToolCall("look", {"n": turn * at_once + place}) for place in range(at_once)])
        for turn in range(count)
    ]
    return [*calls, "Done."]


def look(size: int) -> list[Tool]:
    """A tool with results of `size` characters, each of them different."""
    numbered = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return [Tool("look", fn=lambda n: f"result {n}: " + f"line {n} of text; " * (size // 16), parameters=numbered)]


def rows_of(count: int, tokens: int) -> list[tuple[str, str]]:
    """`count` rows of about `tokens` tokens each, user and assistant in turn."""
    return [
        ("assistant" if number % 2 else "user", f"row {number}: " + f"some words {number} " * (tokens // 4))
        for number in range(count)
    ]
