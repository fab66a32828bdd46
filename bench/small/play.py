"""One task through the whole runner, and what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from bench.small.desk import Desk, tools_for
from bench.small.tasks import Task
from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Part, Parts, all_but
from tests.host import Model, ModelRequest, Reply, RunRecord, TestHost, full_manifest

Speaker = Callable[[ModelRequest], Reply | str | Awaitable[Reply | str]]
MOST_ROUNDS: Final = 12
"""Rounds of tools where nothing else ends a circle; the default of the form is 100, which no model needs here."""
MARKUP: Final = ("<tool_call", "tool_response", '"arguments"', "reply_to_user", "load_tool")
"""What nobody in a chat is to read."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run the tasks: the fields of the binding, and what of the small profile is on. `site`: what the owner
    notes about the place."""

    name: str
    profile: str = "small"
    form: str = "guided"
    parts: Parts = EVERY_PART
    site: str = ""

    def without(self, part: Part) -> Arm:
        return replace(self, name=f"{self.name} without {part.value}", parts=self.parts - {part})


STANDARD: Final = Arm("standard", "standard", "native")
LENIENT: Final = Arm("lenient reading alone", "small", "native", frozenset({Part.LENIENT_READING}))
OWN_PARSER: Final = Arm("small, llama.cpp's parser", "small", "native", all_but(Part.LENIENT_READING))
NATIVE: Final = Arm("small, native", "small", "native")
TEXT: Final = Arm("small, json", "small", "json")
TAGS: Final = Arm("small, tags", "small", "tags")
GUIDED: Final = Arm("small, guided", "small", "guided")
NOTED: Final = Arm(
    "small, guided, with a note",
    site="Questions about the office (its codes, times, rooms, people and rules): look them up with search_docs first.",
)
ARMS: Final = (STANDARD, LENIENT, OWN_PARSER, NATIVE, TAGS, TEXT, GUIDED)


@dataclass(frozen=True, slots=True)
class Played:
    """One task. `rounds`: requests to the model; `tokens_in` and `tokens_out` over all of them; `shown`: markup of a
    call reached the chat."""

    task: str
    finished: bool
    rounds: int
    tokens_in: int
    tokens_out: int
    shown: bool
    answer: str


async def play(task: Task, arm: Arm, speaker: Speaker) -> Played:
    """Run one task; its desk is made anew and removed."""
    with tempfile.TemporaryDirectory(prefix="q5-") as folder:
        desk = Desk(Path(folder))
        async with _host(desk, arm, speaker) as host:
            host.remember(*zip(cycle(("user", "assistant")), task.history, strict=False))
            run = await host.say(task.says)
        return _played(task, desk, run)


def _host(desk: Desk, arm: Arm, speaker: Speaker) -> TestHost:
    config: dict[str, Any] = {
        "model-profile": arm.profile,
        "tool-call-format": arm.form,
        "date-grounding": False,
        "timeout": 86_400,
        "step-timeout": 3_600,
        "max-tool-iterations": MOST_ROUNDS,
        "site-instructions": arm.site,
    }
    return TestHost(
        DefaultRunner(parts=arm.parts),
        manifest=full_manifest(),
        models=[Model("m1", default=speaker)],
        tools=tools_for(desk),
        config=config,
    )


def _played(task: Task, desk: Desk, run: RunRecord) -> Played:
    text, usage = run.final_text or "", run.usage or {}
    shown = any(mark in text for mark in MARKUP)
    return Played(
        task=task.id,
        finished=run.status == "completed" and task.check(desk, text),
        rounds=len(run.requests),
        tokens_in=int(usage.get("prompt_tokens", 0)),
        tokens_out=int(usage.get("completion_tokens", 0)),
        shown=shown,
        answer=text[:200],
    )
