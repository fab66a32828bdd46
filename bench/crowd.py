"""`python -m bench.crowd ours|bare`: the peak memory of 50 runs at once, each over 200k tokens of history."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from bench.scenes import Scene, bare_without_deltas, ours, rows_of
from tests.host import Reply

RUNS = 50
_SCENE = Scene("", list, config={"context-window-tokens": 400_000})


async def _run(who: str) -> None:
    async with _SCENE.host(ours if who == "ours" else bare_without_deltas) as host:
        host.model.default = Reply("Here.", delay=3.0)
        history = rows_of(50, 4000)
        for number in range(RUNS):
            host.remember(*history, conversation=f"person_{number}")
        runs = [host.start("go on", conversation=f"person_{number}") for number in range(RUNS)]
        for run in runs:
            await run.wait()
            # The provider's own copy is no part of the plugin.
            forgotten: list[Any] = run.requests
            forgotten.clear()
        assert [run.answer for run in runs] == ["Here."] * RUNS


def _peak() -> int:
    """KiB. Not ru_maxrss where it can be helped: a child begins with that of its parent."""
    try:
        status = Path("/proc/self/status").read_text("ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    asyncio.run(_run(sys.argv[1]))
    print(json.dumps({"peak": round(_peak() / 1024, 1)}))


if __name__ == "__main__":
    main()
