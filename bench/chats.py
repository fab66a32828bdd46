"""Q3: times through the real LangBot, ours and the pass-through plugin beside each other in one bring-up."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from bench import bringup
from bench.table import Row
from demo.bootstrap import ROOT
from demo.chat import Chat, Turn
from demo.errors import DemoError
from tests.e2e.bed import Bed
from tests.e2e.crowd import ROOM
from tests.e2e.scripted_model import Reply, Request, say

PASSTHROUGH = ROOT / "tests" / "e2e" / "plugins" / "passthrough"
CROWD = 50
_SETTINGS = {**ROOM, "SYSTEM__WEBSOCKET_RETENTION__MAX_CONNECTIONS_PER_WORKSPACE": str(CROWD * 2)}
"""LangBot lets 32 pages of one workspace connect unless told otherwise."""


@dataclass(frozen=True)
class _Scene:
    """Answers of so many chunks, `pause` seconds apart; so many of them in each chat.

    A chat stays below the runner's limit of fetched rows: beyond it some turns ask for a summary too.
    """

    name: str
    chunks: int
    pause: float
    turns: int


SHORT: Final = _Scene("short answer", 1, 0.0, 20)
SPREAD: Final = _Scene("40 chunks over 0.8 s", 40, 0.02, 20)
LONG: Final = _Scene("400 chunks over 8 s", 400, 0.02, 5)
LONGEST: Final = _Scene("2,000 chunks over 30 s", 2000, 0.015, 3)


def rows() -> Iterator[Row]:
    with bringup.bed(_SETTINGS) as bed:
        yield from _compared(bed, bringup.second_runner(bed, PASSTHROUGH))


def _compared(bed: Bed, least: str) -> Iterator[Row]:
    """Rows of both runners. A limit that hangs on the other's figure is that figure and what may come on top."""
    both = (least, bed.runner_id)
    bare, ours = asyncio.run(_played(bed, both, SHORT))
    yield _first_text(SHORT, bare, ours)
    yield Row("Q3", SHORT.name, "answers missing in the next request", bare.lost, ours.lost, 0)
    bare, ours = asyncio.run(_played(bed, both, SPREAD))
    yield _first_text(SPREAD, bare, ours)
    bare, ours = asyncio.run(_played(bed, both, LONG))
    yield _first_text(LONG, bare, ours)
    yield Row("Q3", LONG.name, _behind(LONG), bare.behind, ours.behind, 0.5, "s")
    yield Row("Q3", LONG.name, "answers missing in the next request", bare.lost, ours.lost, 0)
    (ours,) = asyncio.run(_played(bed, both[1:], LONGEST))
    yield Row("Q3", LONGEST.name, _behind(LONGEST), None, ours.behind, 1.0, "s")
    yield Row("Q3", LONGEST.name, "answers missing in the next request", None, ours.lost, 0)
    lost = asyncio.run(_crowd(bed))
    yield Row("Q3", f"{CROWD} conversations at once", "answers lost or crossed", None, float(lost), 0)


@dataclass(frozen=True)
class _Times:
    """Medians: seconds from a question to its first visible text, and from the model's last chunk to the whole text.
    `lost`: answers that the next request does not hold once."""

    first: float
    behind: float
    lost: int


def _first_text(scene: _Scene, bare: _Times, ours: _Times) -> Row:
    what = f"first visible text, median of {scene.turns} in turn"
    return Row("Q3", scene.name, what, bare.first, ours.first, _rounded(bare.first + 0.07), "s")


def _behind(scene: _Scene) -> str:
    return f"whole text behind the model, median of {scene.turns}"


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


def _pipeline(bed: Bed, runner_id: str) -> str:
    api = bed.langbot.api
    pipeline = api.add_pipeline("bench")
    api.bind(pipeline, runner_id, api.default_config(runner_id, bed.model("scripted")))
    return pipeline


async def _played(bed: Bed, runners: Sequence[str], scene: _Scene) -> list[_Times]:
    """A chat of each runner, question by question in turn, so that a slow moment of the machine meets both alike."""
    async with AsyncExitStack() as stack:
        asked = [_Asked(await stack.enter_async_context(bed.chat(_pipeline(bed, runner)))) for runner in runners]
        for one in asked:
            await one.warmed_up(bed)
        for turn in range(scene.turns):
            # Whoever asks second in one turn asks first in the next.
            for one in asked[:: -1 if turn % 2 else 1]:
                await one.ask(bed, scene, turn)
        return [await one.closed(bed) for one in asked]


@dataclass(frozen=True)
class _Asked:
    """A chat, and what its turns came to."""

    chat: Chat
    first: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    async def warmed_up(self, bed: Bed) -> None:
        bed.scripted.script(say("Hello."))
        await self.chat.ask("Hello?")

    async def ask(self, bed: Bed, scene: _Scene, turn: int) -> None:
        chunks = tuple(f"第{turn}答{place:05d} " for place in range(scene.chunks))
        whole = "".join(chunks).strip()
        bed.scripted.script(Reply(chunks=chunks, chunk_delay=scene.pause))
        asked = await self.chat.ask(f"question {turn}", seconds=900)
        self.first.append(_first_shown(asked))
        complete = next((frame.at for frame in asked.frames if frame.text.strip() == whole), None)
        if complete is None:
            raise DemoError(f"an answer did not become whole: {asked.frames[-1:]}")
        self.behind.append(max(0.0, complete - bed.scripted.ended[0]))
        self.answers.append(whole)
        self.requests.extend(bed.scripted.requests)

    async def closed(self, bed: Bed) -> _Times:
        """One more question shows whether the last answer was kept."""
        bed.scripted.script(say("Yes."))
        await self.chat.ask("Is that all?")
        later = [*self.requests[1:], *bed.scripted.requests]
        lost = sum(request.holds(answer) != 1 for request, answer in zip(later, self.answers, strict=True))
        first, behind = [_rounded(statistics.median(times)) for times in (self.first, self.behind)]
        return _Times(first, behind, lost)


def _first_shown(turn: Turn) -> float:
    """Seconds from a question to the first visible text."""
    return next(frame.at for frame in turn.frames if frame.text.strip()) - turn.sent_at


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
