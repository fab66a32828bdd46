"""The window across the end of a run (G1): ours beside the shortest end the protocol allows, in one bring-up."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.table import Row
from demo import langbot, package, ports
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.crossings import Crossing, cross, table, window
from tests.e2e.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parent.parent
SHORTEST = ROOT / "tests" / "e2e" / "plugins" / "shortest"
PAIRS = int(os.environ.get("WINDOW_PAIRS", "60"))
PAIRS_PER_CHAT = 10
SPREAD = 0.8
IDLE = 1.0
"""Seconds the yardstick waits before its last look: its end comes so much later."""


def rows() -> Iterator[Row]:
    folder = tempfile.TemporaryDirectory(prefix="localagent-bench-")
    with folder as name, ScriptedModel() as model, Children() as children:
        place = Path(name)
        bot = langbot.start(children, place, ports.choose(), place / "logs")
        bed = furnish(bot, ROOT, package.build(ROOT, place / "dist"), package.identity(ROOT), model)
        who = package.identity(SHORTEST)
        bot.api.install(package.build(SHORTEST, place / "dist"))
        shortest = bot.api.wait_for_runner(who.author, who.name)
        least, ours = asyncio.run(_both(bed, shortest))
        scene = f"{PAIRS} messages across the end of a run"
        yield Row(
            "G1", scene, "window in which one is dropped", round(window(least), 3), round(window(ours), 3), 0.15, "s"
        )
        wrong = sum(each.answers != (each.fate != "dropped") or each.strangers > 0 for each in ours)
        yield Row("G1", scene, "answered twice, by a stranger, or lost without a trace", None, wrong, 0)


async def _both(bed: Bed, shortest: str) -> tuple[list[Crossing], list[Crossing]]:
    """Chat for chat in turn, so that both meet the same machine."""
    least: list[Crossing] = []
    ours: list[Crossing] = []
    api = bed.langbot.api
    pipelines = {}
    for runner in (shortest, bed.runner_id):
        pipelines[runner] = api.add_pipeline(f"window of {runner}")
        api.bind(pipelines[runner], runner, api.default_config(runner, bed.model("scripted")))
    for begin in range(0, PAIRS, PAIRS_PER_CHAT):
        numbers = range(begin, min(begin + PAIRS_PER_CHAT, PAIRS))
        least += await _crossed(bed, pipelines[shortest], numbers, IDLE)
        ours += await _crossed(bed, pipelines[bed.runner_id], numbers, 0.0)
    for name, crossings in (("shortest end", least), ("ours", ours)):
        print(f"{name}: {table(crossings)}", file=sys.stderr, flush=True)
    return least, ours


async def _crossed(bed: Bed, pipeline: str, numbers: range, later: float) -> list[Crossing]:
    bed.scripted.script()
    step = SPREAD / (PAIRS - 1)
    async with bed.chat(pipeline) as chat:
        # The moments are shuffled over all chats, so that a long history does not go with a late message.
        return [await cross(bed, bed.scripted, chat, n, later + step * (n * 37 % PAIRS)) for n in numbers]
