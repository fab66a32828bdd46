"""Q1: calls to the Host, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.scenes import MakeRunner, Scene, bare, chunks, look, ours, rounds, rows_of
from bench.table import Row
from tests.host import RunRecord
from tests.runs.long_chats import is_summary

_SMALL_BUDGET = {"context-window-tokens": 32_000, "context-reserve-tokens": 8_000}

SCENES = (
    Scene("one answer, no tools", lambda: ["Hello!"], {"calls": 6, "before the model": 4, "depth of that wait": 2}),
    Scene("one tool", lambda: rounds(1), {"calls": 10}, lambda: look(10)),
    Scene("10 tools, one a turn", lambda: rounds(10), {"calls": 48}, lambda: look(10)),
    Scene("100 tools of 500 characters", lambda: rounds(100), {"calls": 410, "MB out": 6}, lambda: look(500)),
    Scene("2,000 chunks", lambda: [chunks(2000)], {"calls": 6}),
    Scene(
        "3 knowledge bases and rerank",
        lambda: ["Found."],
        {"calls": 10, "depth of that wait": 3},
        knowledge=3,
        for_bare=False,
    ),
    Scene("8 parallel tools, 5 rounds", lambda: rounds(5, at_once=8), {"calls": 64}, lambda: look(10)),
    Scene(
        "100 tools of 20,000 characters, 200k window",
        lambda: rounds(100),
        {"calls": 450, "MB out": 60, "summaries": 3},
        lambda: look(20_000),
        for_bare=False,
    ),
    Scene(
        "400 rows of history (160k tokens), 24k budget, cold",
        lambda: ["Here."],
        {"calls": 12, "summaries": 1},
        history=rows_of(400, 400),
        config=_SMALL_BUDGET,
        for_bare=False,
    ),
    Scene(
        "the same, all 400 rows fetched",
        lambda: ["Here."],
        {"summaries": 1},
        history=rows_of(400, 400),
        config={**_SMALL_BUDGET, "context-history-fetch-limit": 400},
        for_bare=False,
    ),
    Scene(
        "10 chat turns in an 8k window",
        lambda: [f"Answer {turn}. " + "More words to keep. " * 200 for turn in range(10)],
        {"calls": 100, "summaries": 10},
        config={"context-window-tokens": 8_000},
        says=10,
    ),
    Scene("sandbox on, plain text", lambda: ["Hello!"], {"calls": 7}, config={"box-enabled": True}, box=True),
)


def rows() -> Iterator[Row]:
    for scene in SCENES:
        mine = asyncio.run(_measured(scene, ours))
        least = asyncio.run(_measured(scene, bare)) if scene.for_bare else {}
        for measure in dict.fromkeys([*scene.limits, "calls", "depth", "MB out", "deltas", "summaries"]):
            yield Row("Q1", scene.name, measure, least.get(measure), mine[measure], scene.limits.get(measure))


async def _measured(scene: Scene, make: MakeRunner) -> dict[str, float]:
    async with scene.host(make) as host:
        runs = [await host.say(f"question {number}") for number in range(scene.says)]
    return _counts(runs)


def _counts(runs: list[RunRecord]) -> dict[str, float]:
    counted = [run.calls.but("run_get") for run in runs]
    first = counted[0].before_first_model_call
    return {
        "calls": sum(len(calls) for calls in counted),
        "depth": max(calls.depth for calls in counted),
        "before the model": len(first),
        "depth of that wait": first.depth,
        "MB out": round(sum(calls.bytes_out for calls in counted) / 1e6, 3),
        "deltas": sum(len(run.deltas) for run in runs),
        "summaries": sum(is_summary(request) for run in runs for request in run.requests),
    }
