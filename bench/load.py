"""`python -m bench.load`: many conversations at once through the real LangBot, in rounds.

Every conversation has a word of its own, every message uses a tool, and the window is small enough that each
conversation is summarised.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.machine import machine
from demo import langbot, package, ports
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.crowd import CONFIG, Crowd, CrowdPlatform, Tally, people
from tests.e2e.group import group_bot
from tests.e2e.postgres import postgres
from tests.e2e.scripted_model import ScriptedModel
from tests.e2e.toolbox import plugin_installed
from tests.e2e.worker import Worker, worker_of

ROOT = Path(__file__).resolve().parent.parent
MEMORY_LIMIT = 512
"""MiB: what LangBot allows a worker (`plugin.worker.max_memory_mb`)."""


def main() -> int:
    asked = _asked()
    with _bed(asked.database, dict(pair.split("=", 1) for pair in asked.set)) as bed, ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="localagent-load-"))
        stack.enter_context(plugin_installed(bed, Path(folder)))
        platform = stack.enter_context(CrowdPlatform())
        stack.enter_context(group_bot(bed, bed.pipeline(config=CONFIG), platform))
        print(f"{machine()}, LangBot on {asked.database}", flush=True)
        return 0 if _rounds(bed, platform, asked) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--messages", type=int, default=20, help="in each conversation, one after the other")
    parser.add_argument("--rounds", type=int, default=3, help="each with new people")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="postgresql")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of LangBot's")
    return parser.parse_args()


@contextmanager
def _bed(database: str, settings: dict[str, str]) -> Iterator[Bed]:
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="localagent-load-")))
        model = stack.enter_context(ScriptedModel())
        kept = stack.enter_context(postgres()) if database == "postgresql" else {}
        children = stack.enter_context(Children())
        bot = langbot.start(children, place, ports.choose(), place / "logs", {**kept, **settings})
        yield furnish(bot, ROOT, package.build(ROOT, place / "dist"), package.identity(ROOT), model)


def _rounds(bed: Bed, platform: CrowdPlatform, asked: argparse.Namespace) -> bool:
    """Prints a line for every round. True when all was sound, the memory in its limit and not growing."""
    worker = worker_of(bed.langbot.runtime, bed.identity)
    peaks, sound = [], True
    for number in range(1, asked.rounds + 1):
        worker.forget_peak()
        begin = time.monotonic()
        crowd = Crowd(platform, people(asked.conversations))
        bed.scripted.script(otherwise=crowd.model)
        asyncio.run(crowd.talk(1, asked.messages))
        tally = crowd.close()
        peaks.append(worker.peak)
        sound = sound and tally.sound
        print(_line(number, tally, worker, time.monotonic() - begin), flush=True)
    return sound and max(peaks) < MEMORY_LIMIT and peaks[-1] <= peaks[0] * 1.15


def _line(number: int, tally: Tally, worker: Worker, seconds: float) -> str:
    told = Counter(tally.failed)
    return (
        f"round {number}: {tally.answered} of {tally.asked} answered in {seconds:.0f} s, at most {tally.at_once} at once,"
        f" {tally.requests} requests, {tally.summaries} summaries; lost {len(tally.lost)}, crossed {len(tally.crossed)},"
        f" doubled {len(tally.doubled)}, forgotten {len(tally.forgotten)}, answered otherwise {dict(told) or 0};"
        f" worker peak {worker.peak:.0f} MiB, now {worker.memory:.0f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main())
