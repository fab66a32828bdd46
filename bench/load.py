"""`python -m bench.load`: many conversations at once through the real LangBot, in rounds.

Every conversation has a word of its own, every message uses a tool, and the window is small enough that each
conversation is summarised. LangBot gets more threads than it has by itself (`tests.e2e.crowd.ROOM`), as the README
advises; `--set` says otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from bench import bringup
from bench.bringup import end_when_asked
from bench.machine import machine
from tests.e2e.bed import Bed
from tests.e2e.bots import group_bot
from tests.e2e.crowd import CONFIG, ROOM, Crowd, CrowdPlatform, Tally, people
from tests.e2e.machines import postgres, worker_of
from tests.e2e.toolbox import plugin_installed
from weights.errors import one_line

MEMORY_LIMIT = 512
"""MiB: what LangBot allows a worker (`plugin.worker.max_memory_mb`)."""
FLAT = 1.15
"""The last round's peak may be this many times the first's."""


def main() -> int:
    asked = _asked()
    end_when_asked()
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
        kept = stack.enter_context(postgres()) if database == "postgresql" else {}
        yield stack.enter_context(bringup.bed({**ROOM, **kept, **settings}))


def _rounds(bed: Bed, platform: CrowdPlatform, asked: argparse.Namespace) -> bool:
    """Prints what came of every round. True when all was sound, the memory in its limit and not growing."""
    worker = worker_of(bed.langbot.runtime, bed.identity)
    peaks, sound = [], []
    for number in range(1, asked.rounds + 1):
        worker.forget_peak()
        crowd = Crowd(platform, people(asked.conversations), bed.langbot.api.idle)
        bed.scripted.script(otherwise=crowd.model)
        print(f"round {number}:", end=" ")
        with _timed({"LangBot": psutil.Process(bed.langbot.host.pid), "worker": worker.process}, crowd.tally):
            asyncio.run(crowd.talk(1, asked.messages))
            sound.append(crowd.close().sound)
        print(f"  worker's memory: peak {worker.peak:.0f} MiB, now {worker.memory:.0f} MiB", flush=True)
        peaks.append(worker.peak)
    print(f"what LangBot's log says of failures: {dict(_failures(bed.langbot.host.log)) or 'nothing'}")
    return all(sound) and max(peaks) < MEMORY_LIMIT and peaks[-1] <= peaks[0] * FLAT


@contextmanager
def _timed(spent: Mapping[str, psutil.Process], tally: Tally) -> Iterator[None]:
    """Prints what came of the messages of the block, how long it took, and what each process spent on a message."""
    begin, before = time.monotonic(), {name: _seconds(process) for name, process in spent.items()}
    yield
    each = ", ".join(f"{name} {(_seconds(spent[name]) - before[name]) / tally.asked:.2f}" for name in spent)
    print(f"{_told(tally)}\n  {time.monotonic() - begin:.0f} s; seconds of processor time per message: {each}")


def _seconds(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def _failures(log: Path) -> Counter[str]:
    """The last lines of tracebacks, and messages that were dropped, each with how often it came."""
    text = log.read_text("utf-8", errors="replace")
    found = re.findall(r"^[\w.]+(?:Error|Exception): .+$|^.*[Dd]ropped.*$", text, flags=re.MULTILINE)
    return Counter(one_line(line, 100) for line in found)


def _told(tally: Tally) -> str:
    return (
        f"{tally.answered} of {tally.asked} messages answered, at most {tally.at_once} conversations at once; "
        f"{tally.requests} requests, {tally.summaries} of them for summaries\n"
        f"  lost {len(tally.lost)}, crossed {len(tally.crossed)}, doubled {len(tally.doubled)}, "
        f"forgotten {len(tally.forgotten)}, answered otherwise {dict(Counter(tally.failed)) or 0}"
    )


if __name__ == "__main__":
    sys.exit(main())
