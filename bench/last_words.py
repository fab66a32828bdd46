"""L13: how long after the model an answer is sent where the adapter cannot stream, beside the pass-through runner.

`python -m bench.last_words` asks both in turn on a platform of the tests, through one real LangBot.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from bench import bringup
from bench.chats import PASSTHROUGH
from bench.table import Row
from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.bots import group_bot
from tests.e2e.onebot import Json, OneBot
from tests.e2e.scripted_model import Reply

TURNS: Final = int(os.environ.get("LAST_WORDS_TURNS", "20"))
LIMIT: Final = 0.04
"""Seconds that ours may come later (L13)."""

_USER: Final = 501


class _Platform(OneBot):
    """Keeps when it was told to send something (seconds of the monotonic clock)."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[float] = []

    async def _answer(self, socket: web.WebSocketResponse, frame: Json) -> None:
        if str(frame["action"]).startswith("send_"):
            self.sent.append(time.monotonic())
        await super()._answer(socket, frame)


@dataclass(frozen=True)
class _Asked:
    platform: _Platform
    behind: list[float] = field(default_factory=list)

    def ask(self, bed: Bed, turn: int) -> None:
        """One message; how long its answer came after the model's last chunk."""
        bed.scripted.script(Reply(chunks=("This ", "is ", f"answer {turn}."), chunk_delay=0.02))
        before = len(self.platform.sent)
        self.platform.private(f"question {turn}", _USER)
        wait_until("the answer", lambda: len(self.platform.sent) > before, 60)
        self.behind.append(self.platform.sent[-1] - bed.scripted.ended[0])


def measured(turns: int = TURNS) -> tuple[float, float]:
    """Median seconds behind the model: the pass-through runner's and ours."""
    with bringup.bed() as bed, ExitStack() as stack:
        asked = []
        for runner in (bringup.second_runner(bed, PASSTHROUGH), bed.runner_id):
            platform = stack.enter_context(_Platform())
            stack.enter_context(group_bot(bed, _pipeline(bed, runner), platform))
            asked.append(_Asked(platform))
        for turn in range(-1, turns):
            for one in asked[:: -1 if turn % 2 else 1]:
                one.ask(bed, turn)
                wait_until("LangBot to be idle", bed.langbot.api.idle, 60)
        least, mine = [statistics.median(one.behind[1:]) for one in asked]
        return least, mine


def _pipeline(bed: Bed, runner_id: str) -> str:
    api = bed.langbot.api
    pipeline = api.add_pipeline(f"last words of {runner_id}")
    api.bind(pipeline, runner_id, api.default_config(runner_id, bed.model("scripted")))
    return pipeline


def rows() -> Iterator[Row]:
    least, mine = measured()
    what = f"answer behind the model, median of {TURNS}"
    limit = round(least + LIMIT, 3)
    yield Row("L13", "an adapter that cannot stream", what, round(least, 3), round(mine, 3), limit, "s")


def main(arguments: Sequence[str] = ()) -> None:
    least, mine = measured()
    print(f"pass-through {least:.3f} s, ours {mine:.3f} s: {mine - least:+.3f} (at most +{LIMIT})")


if __name__ == "__main__":
    bringup.end_when_asked()
    main()
