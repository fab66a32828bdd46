"""Q2: what a run costs inside the plugin: CPU of its side of the wire, stalls of the event loop, memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from bench.scenes import MakeRunner, Scene, bare, bare_without_deltas, chunks, look, ours, rounds, rows_of
from bench.steps import Meter, Stall
from bench.table import Row

REPEATS = 3
FEW, MANY = 200, 2000
CROWD_LIMIT_MB = 512

_HISTORY = rows_of(50, 3200)
_WIDE = {"context-window-tokens": 400_000}


def rows() -> Iterator[Row]:
    yield from _chunks("2,000 chunks", Scene("", list))
    yield from _chunks("2,000 chunks, 160k tokens of history", Scene("", list, history=_HISTORY, config=_WIDE))
    yield from _rounds()
    yield from _stalls()
    yield from _crowd()


def _cpu(scene: Scene, make: MakeRunner) -> float:
    """CPU seconds of the plugin's side of one run, the least of several."""
    return min(asyncio.run(_measured(scene, make)).seconds["plugin"] for _ in range(REPEATS))


async def _measured(scene: Scene, make: MakeRunner, *, watch: bool = False) -> Meter:
    meter = Meter()
    meter.install(asyncio.get_running_loop(), watch=watch)
    async with scene.host(make, threaded=watch) as host:
        run = await host.say("go on")
        assert run.status == "completed", (scene.name, run.status, run.error)
    meter.close()
    return meter


def _per_chunk(scene: Scene, make: MakeRunner) -> float:
    """Microseconds of CPU for one more chunk."""
    many = _cpu(replace(scene, replies=lambda: [chunks(MANY)]), make)
    few = _cpu(replace(scene, replies=lambda: [chunks(FEW)]), make)
    return round((many - few) / (MANY - FEW) * 1e6, 1)


def _chunks(name: str, scene: Scene) -> Iterator[Row]:
    least, mine = _per_chunk(scene, bare_without_deltas), _per_chunk(scene, ours)
    yield Row("Q2", name, "CPU per chunk, bare without deltas", least, mine, 2 * least, "µs")
    yield Row("Q2", name, "CPU per chunk, bare with a delta each", _per_chunk(scene, bare), mine, None, "µs")


def _rounds() -> Iterator[Row]:
    ratios = []
    for count in (10, 100):
        scene = Scene("", lambda count=count: rounds(count), tools=lambda: look(500))  # type: ignore[misc]
        least, mine = _cpu(scene, bare_without_deltas), _cpu(scene, ours)
        ratios.append(mine / least)
        name = f"{count} tools of 500 characters"
        yield Row("Q2", name, "CPU of the run", round(least * 1000, 1), round(mine * 1000, 1), None, "ms")
    yield Row("Q2", "100 tools against 10", "growth of the ratio to bare", 1, round(ratios[1] / ratios[0], 3), 1.2)


_STALL_SCENES = (
    Scene("2,000 chunks", lambda: [chunks(MANY)]),
    Scene("2,000 chunks, 160k tokens of history", lambda: [chunks(MANY)], history=_HISTORY, config=_WIDE),
    Scene("100 tools of 20,000 characters", lambda: rounds(100), tools=lambda: look(20_000)),
    Scene(
        "400 rows of history, 24k budget, cold",
        lambda: ["Here."],
        history=rows_of(400, 400),
        config={"context-window-tokens": 32_000, "context-reserve-tokens": 8_000, "context-history-fetch-limit": 400},
    ),
)


def _stalls() -> Iterator[Row]:
    for scene in _STALL_SCENES:
        stalls = asyncio.run(_measured(scene, ours, watch=True)).stalls
        worst = max(stalls, key=lambda one: one.ours, default=Stall(0, 0, ""))
        longest = max(stalls, key=lambda one: one.milliseconds, default=Stall(0, 0, ""))
        measure = f"longest hold of the loop by our code [{worst.where}]"
        yield Row("Q2", scene.name, measure, None, round(worst.ours, 1), 20, "ms CPU")
        measure = f"longest hold, the SDK's work included [{longest.where}]"
        yield Row("Q2", scene.name, measure, None, round(longest.milliseconds, 1), None, "ms CPU")


def _crowd() -> Iterator[Row]:
    least, mine = _peak_of("bare"), _peak_of("ours")
    name = "50 runs at once, 200k tokens of history each"
    yield Row("Q2", name, "peak memory, the test host's side included", least, mine, CROWD_LIMIT_MB, "MiB")


def _peak_of(who: str) -> float:
    """Peak memory of a process of its own, MiB."""
    made = subprocess.run([sys.executable, "-m", "bench.crowd", who], check=True, capture_output=True, text=True)
    return float(json.loads(made.stdout)["peak"])
