"""Q3: times through the real LangBot, ours and the pass-through plugin beside each other in one bring-up."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench import bringup
from bench.table import Row
from demo.chat import Chat, Turn
from demo.errors import DemoError
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, Request, say

PASSTHROUGH = bringup.ROOT / "tests" / "e2e" / "plugins" / "passthrough"
SHORT_TURNS = 25
CROWD = 50
_SETTINGS = {"SYSTEM__WEBSOCKET_RETENTION__MAX_CONNECTIONS_PER_WORKSPACE": str(CROWD * 2)}
"""LangBot lets 32 pages of one workspace connect unless told otherwise."""


def rows() -> Iterator[Row]:
    with bringup.bed(_SETTINGS) as bed:
        yield from _compared(bed, bringup.second_runner(bed, PASSTHROUGH))


def _compared(bed: Bed, least: str) -> Iterator[Row]:
    """Rows of both runners. A limit that hangs on the other's figure is that figure and what may come on top."""
    scene = "short answer"
    bare, ours = asyncio.run(_short(bed, (least, bed.runner_id), chunks=1))
    yield _first_text(scene, bare, ours)
    yield Row("Q3", scene, "answers missing in the next request", bare.lost, ours.lost, 0)
    scene = "40 chunks over 0.8 s"
    yield _first_text(scene, *asyncio.run(_short(bed, (least, bed.runner_id), chunks=40)))
    scene = "400 chunks over 8 s"
    long, mine = [asyncio.run(_long(bed, runner, 400, 0.02)) for runner in (least, bed.runner_id)]
    yield Row("Q3", scene, "first visible text, once", long.first, mine.first, _rounded(long.first + 0.07), "s")
    yield Row("Q3", scene, "whole text behind the model", long.behind, mine.behind, 0.5, "s")
    yield Row("Q3", scene, "answers missing in the next request", long.lost, mine.lost, 0)
    scene = "2,000 chunks over 30 s"
    mine = asyncio.run(_long(bed, bed.runner_id, 2000, 0.015))
    yield Row("Q3", scene, "whole text behind the model", None, mine.behind, 1.0, "s")
    yield Row("Q3", scene, "answers missing in the next request", None, mine.lost, 0)
    lost = asyncio.run(_crowd(bed))
    yield Row("Q3", f"{CROWD} conversations at once", "answers lost or crossed", None, float(lost), 0)


def _first_text(scene: str, bare: _Short, ours: _Short) -> Row:
    least, first = [_rounded(statistics.median(one.times)) for one in (bare, ours)]
    what = f"first visible text, median of {SHORT_TURNS} in turn"
    return Row("Q3", scene, what, least, first, _rounded(least + 0.07), "s")


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


@dataclass(frozen=True)
class _Short:
    """Seconds to the first visible text of each turn; answers that the next request does not hold once."""

    times: list[float]
    lost: int


@dataclass(frozen=True)
class _Long:
    """Seconds from the question to the first visible text, and from the model's last chunk to the whole text; answers
    that the next request does not hold once."""

    first: float
    behind: float
    lost: int


def _pipeline(bed: Bed, runner_id: str) -> str:
    api = bed.langbot.api
    pipeline = api.add_pipeline("bench")
    api.bind(pipeline, runner_id, api.default_config(runner_id, bed.model("scripted")))
    return pipeline


async def _short(bed: Bed, runners: Sequence[str], *, chunks: int) -> list[_Short]:
    """A chat of each runner, question by question in turn, so that a slow moment of the machine meets both alike.

    One question of each chat warms up; answers have so many chunks, 20 ms apart.
    """
    async with AsyncExitStack() as stack:
        chats = [await stack.enter_async_context(bed.chat(_pipeline(bed, runner))) for runner in runners]
        played = [_Played([], [], []) for _ in runners]
        for turn in range(SHORT_TURNS + 1):
            # Whoever asks second in one turn asks first in the next.
            for chat, one in list(zip(chats, played, strict=True))[:: -1 if turn % 2 else 1]:
                await one.ask(bed, chat, turn, chunks)
    return [one.closed() for one in played]


@dataclass(frozen=True)
class _Played:
    """What one chat's turns came to: seconds to the first visible text, the answers, and the requests for them."""

    times: list[float]
    answers: list[str]
    requests: list[Request]

    async def ask(self, bed: Bed, chat: Chat, turn: int, chunks: int) -> None:
        answer = "".join(f"Word {place} of answer {turn}. " for place in range(chunks))
        bed.scripted.script(say(answer, size=len(answer) // chunks + 1, chunk_delay=0.02))
        asked = await chat.ask(f"question {turn}")
        self.times.append(_first_shown(asked))
        self.answers.append(answer.strip())
        self.requests.extend(bed.scripted.requests)

    def closed(self) -> _Short:
        lost = sum(request.holds(answer) != 1 for request, answer in zip(self.requests[1:], self.answers, strict=False))
        return _Short(self.times[1:], lost)


def _first_shown(turn: Turn) -> float:
    """Seconds from a question to the first visible text."""
    return next(frame.at for frame in turn.frames if frame.text.strip()) - turn.sent_at


async def _long(bed: Bed, runner_id: str, count: int, pause: float) -> _Long:
    """A long answer, and one more turn of the same chat."""
    chunks = tuple(f"词{number:05d} " for number in range(count))
    bed.scripted.script(Reply(chunks=chunks, chunk_delay=pause), say("Yes."))
    whole = "".join(chunks)
    async with bed.chat(_pipeline(bed, runner_id)) as chat:
        turn = await chat.ask("Tell me a lot.", seconds=900)
        ended = bed.scripted.ended[0]
        first = _first_shown(turn)
        complete = next(frame.at for frame in turn.frames if frame.text.strip() == whole.strip())
        await chat.ask("Is that all?")
    lost = int(bed.scripted.requests[-1].holds(whole.strip()) != 1)
    return _Long(_rounded(first), _rounded(max(0.0, complete - ended)), lost)


async def _crowd(bed: Bed) -> int:
    """Conversations at once, each with a pipeline of its own: how many did not get their own answer."""
    bed.scripted.script()
    pipelines = [await asyncio.to_thread(_pipeline, bed, bed.runner_id) for _ in range(CROWD)]
    async with AsyncExitStack() as stack:
        # One after the other: the Host refuses some of many connections that come in the same moment.
        chats = [await stack.enter_async_context(bed.chat(pipeline)) for pipeline in pipelines]
        right = await asyncio.gather(*[_echoed(chat, f"word-{n:02d}-here") for n, chat in enumerate(chats)])
    return right.count(False)


async def _echoed(chat: Chat, word: str) -> bool:
    """Whether a chat shows the echo of its own word, and of no other."""
    await chat.send(word)
    try:
        await chat.shows(f"echo: {word}", seconds=180)
    except DemoError:
        return False
    shown = [frame.text for frame in chat.frames if frame.kind == "response"]
    return all(text.count("word-") <= 1 and (word in text or "word-" not in text) for text in shown)
