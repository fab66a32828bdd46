"""`python -m tests.soak [--minutes M | --chats N] [--seed N]`: chats one after another; `--chat SEED`: one again.

Exit code 1: something did not hold; each finding names its chat's seed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from random import SystemRandom

from tests.host.steered import run_steered

from .chat import Chat, Report


def soak(seed: int, *, chats: int | None = None, minutes: float | None = None) -> Report:
    """So many chats, or as many as fit into so many minutes, from `seed` on. What a chat waits for takes no time."""
    total, start, number = Report(), time.monotonic(), 0
    while (chats is None or number < chats) and (minutes is None or time.monotonic() - start < minutes * 60):
        made = played(seed + number)
        for finding in made.findings:
            print(finding[:2_000], file=sys.stderr, flush=True)  # noqa: T201 - a command
        total.add(made)
        number += 1
    return total


def played(seed: int) -> Report:
    """One chat on a loop of its own."""

    async def play() -> Report:
        return await Chat(seed).play()

    try:
        return run_steered(play())
    except Exception as accident:  # noqa: BLE001 - a loop in which nothing moves any more, or a Host that fell over
        return Report(chats=1, findings=[f"chat {seed}: {type(accident).__name__}: {accident}"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, help="go on for so long")
    parser.add_argument("--chats", type=int, help="or play so many chats")
    parser.add_argument("--seed", type=int, help="seed of the first chat; a random one otherwise")
    parser.add_argument("--chat", type=int, metavar="SEED", help="play this one chat")
    asked = parser.parse_args()
    if asked.chat is not None:
        asked.seed, asked.chats, asked.minutes = asked.chat, 1, None
    elif asked.chats is None and asked.minutes is None:
        asked.minutes = 1.0
    seed = SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - a command
    logging.disable()  # the SDK tells of each fault at length
    report = soak(seed, chats=asked.chats, minutes=asked.minutes)
    print(report.text)  # noqa: T201 - a command
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
