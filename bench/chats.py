"""Q3: times through the real LangBot, ours and the pass-through plugin beside each other in one bring-up."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from demo import langbot, package, ports
from demo.chat import Chat
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.scripted_model import Reply, ScriptedModel, say

from bench.table import Row

ROOT = Path(__file__).resolve().parent.parent
PASSTHROUGH = ROOT / "tests" / "e2e" / "plugins" / "passthrough"
SHORT_TURNS = 5
CROWD = 50


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as folder, ScriptedModel() as model:
        with Children() as children:
            place = Path(folder)
            bot = langbot.start(children, place, ports.choose(), place / "logs")
            mine = package.build(ROOT, place / "dist")
            bed = furnish(bot, ROOT, mine, package.identity(ROOT), model)
            who = package.identity(PASSTHROUGH)
            bot.api.install(package.build(PASSTHROUGH, place / "dist"))
            least = bot.api.wait_for_runner(who.author, who.name)
            yield from _compared(bed, least)


def _compared(bed: Bed, least: str) -> Iterator[Row]:
    short = [asyncio.run(_short(bed, runner)) for runner in (least, bed.runner_id)]
    first = [statistics.median(times) for times, _ in short]
    yield Row("Q3", "short answer", "first visible text, median of 5", *first, first[0] + 0.07, "s")
    yield Row("Q3", "short answer", "answers missing in the next request", *[float(lost) for _, lost in short], 0)
    text = [asyncio.run(_long(bed, runner, 400, 0.02)) for runner in (least, bed.runner_id)]
    yield Row("Q3", "400 chunks over 8 s", "first visible text", *[one[0] for one in text], None, "s")
    yield Row("Q3", "400 chunks over 8 s", "whole text behind the model", *[one[1] for one in text], 0.5, "s")
    yield Row("Q3", "400 chunks over 8 s", "answers missing in the next request", *[one[2] for one in text], 0)
    mine = asyncio.run(_long(bed, bed.runner_id, 2000, 0.002))
    yield Row("Q3", "2,000 chunks over 4 s", "whole text behind the model", None, mine[1], 1.0, "s")
    yield Row("Q3", "2,000 chunks over 4 s", "answers missing in the next request", None, mine[2], 0)
    lost = asyncio.run(_crowd(bed))
    yield Row("Q3", f"{CROWD} conversations at once", "answers lost or crossed", None, float(lost), 0)


def _pipeline(bed: Bed, runner_id: str) -> str:
    api = bed.langbot.api
    pipeline = api.add_pipeline("bench")
    api.bind(pipeline, runner_id, api.default_config(runner_id, bed.model("scripted")))
    return pipeline


async def _short(bed: Bed, runner_id: str) -> tuple[list[float], int]:
    """Seconds to the first visible text of some turns of one chat, after one that warms up; answers that were lost."""
    answers = [f"Short answer number {number}." for number in range(SHORT_TURNS + 1)]
    bed.scripted.script(*[say(answer, size=100) for answer in answers])
    times = []
    async with bed.chat(_pipeline(bed, runner_id)) as chat:
        for number in range(SHORT_TURNS + 1):
            turn = await chat.ask(f"question {number}")
            shown = [frame.at for frame in turn.frames if frame.text.strip()]
            times.append(round(shown[0] - turn.sent_at, 3))
    requests = bed.scripted.requests[1:]
    lost = sum(request.holds(answer) != 1 for request, answer in zip(requests, answers, strict=False))
    return times[1:], lost


async def _long(bed: Bed, runner_id: str, count: int, pause: float) -> tuple[float, float, float]:
    """First visible text after the question (seconds), whole text after the model's last chunk, answers lost."""
    chunks = tuple(f"词{number:05d} " for number in range(count))
    bed.scripted.script(Reply(chunks=chunks, chunk_delay=pause), say("Yes."))
    whole = "".join(chunks)
    async with bed.chat(_pipeline(bed, runner_id)) as chat:
        turn = await chat.ask("Tell me a lot.", seconds=900)
        ended = bed.scripted.ended[0]
        shown = [frame.at for frame in turn.frames if frame.text.strip()]
        complete = next(frame.at for frame in turn.frames if frame.text.strip() == whole.strip())
        await chat.ask("Is that all?")
    lost = float(bed.scripted.requests[-1].holds(whole.strip()) != 1)
    return round(shown[0] - turn.sent_at, 3), round(max(0.0, complete - ended), 3), lost


async def _crowd(bed: Bed) -> int:
    """Conversations at once, each with a pipeline of its own: how many did not get their own answer."""
    bed.scripted.script()
    pipelines = [await asyncio.to_thread(_pipeline, bed, bed.runner_id) for _ in range(CROWD)]
    answers = await asyncio.gather(
        *[_echoed(bed.chat(pipeline), f"word-{number:02d}-here") for number, pipeline in enumerate(pipelines)]
    )
    return sum(not right for right in answers)


async def _echoed(chat: Chat, word: str) -> bool:
    async with chat:
        await chat.send(word)
        try:
            await chat.shows(f"echo: {word}", seconds=180)
        except Exception:  # noqa: BLE001 - whatever kept the answer away, it is lost
            return False
        return not [frame for frame in chat.frames if frame.kind == "response" and f"echo: {word}" not in frame.text]
