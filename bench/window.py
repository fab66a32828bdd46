"""The window across the end of a run (G1): ours beside the shortest end the protocol allows, in one bring-up."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from bench import bringup
from bench.table import Row
from demo.bootstrap import ROOT
from tests.e2e.bed import Bed
from tests.e2e.crossings import PAIRS_PER_CHAT, Crossing, cross_in_one_chat, moments, table, window

SHORTEST = ROOT / "tests" / "e2e" / "plugins" / "shortest"
PAIRS = int(os.environ.get("WINDOW_PAIRS", "60"))
IDLE = 1.0
"""Seconds the yardstick waits before its last look: its end comes so much later."""


def rows() -> Iterator[Row]:
    with bringup.bed() as bed:
        least, ours = asyncio.run(_both(bed, bringup.second_runner(bed, SHORTEST)))
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
        for crossings, runner, later in ((least, shortest, IDLE), (ours, bed.runner_id, 0.0)):
            bed.scripted.script()
            delays = [later + delay for delay in moments(PAIRS)]
            crossings += await cross_in_one_chat(bed, bed.scripted, pipelines[runner], begin, delays)
    for name, crossings in (("shortest end", least), ("ours", ours)):
        print(f"{name}: {table(crossings)}", file=sys.stderr, flush=True)
    return least, ours
