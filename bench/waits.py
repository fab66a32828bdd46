"""Who waits for summaries, and what is lost in them: the counts of L1, L2, L4, L5 and L6, and a picture of sixty turns.

Everything runs on the test host, once as an adapter that shows nothing before the end (nothing tells the runner, so a
message may be late by two seconds once in ten) and, for the picture, once as one that streams.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from random import Random
from typing import Final

from bench.table import Row
from tests.host import Model, ModelRequest, Reply, TestHost
from tests.host.steered import run_steered
from tests.host.tokens import count_text
from tests.runs.long_chats import SHOWING, budget_of, chats, chatter, copied, is_summary, prose, stored, waited, window
from tests.runs.scenes import host_with

ENGLISH: Final = (
    "My name is Rosalind.",
    "I live in a small town near the sea.",
    "My dog is called Biscuit.",
    "I am allergic to peanuts.",
    "I work as a nurse.",
    "My favourite colour is green.",
    "I have two daughters.",
    "I never eat meat.",
    "My husband plays the cello.",
    "I speak Portuguese at home.",
)
CHINESE: Final = (
    "我叫林小雨。",
    "我住在海边的小镇。",
    "我的狗叫饼干。",
    "我对花生过敏。",
    "我是护士。",
    "我最喜欢绿色。",
    "我有两个女儿。",
    "我不吃肉。",
    "我丈夫会拉大提琴。",
    "我的爱好是爬山。",
)
IDENTIFIERS: Final = tuple(f"OPS-{number}" for number in range(4711, 4728))
_MARK: Final = re.compile(r"MARK-\d+-7")
_FACT: Final = re.compile(r"KEY-\d+-\d+")

Answer = Callable[[ModelRequest], Reply | str]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat. `wait`: requests for a summary before the answer; `needless`: it had one though what was
    sent before, the answer and the message fit the budget; `late`: requests behind the answer."""

    wait: int
    needless: bool
    late: int
    tokens: int


def turns_of(host: TestHost, budget: int) -> list[Turn]:
    """What each message of a chat cost."""
    made: list[Turn] = []
    sent = 0
    for run in host.runs:
        kinds = [is_summary(request) for request in run.requests]
        first = kinds.index(False) if False in kinds else len(kinds)
        answer = host.runs[run.number - 2].final_text if run.number > 1 else ""
        would = sent + count_text(answer or "") + count_text(run.incoming.text or "")
        sent = max((request.tokens for request in chats(run)), default=0)
        made.append(Turn(first, waited(run) and would <= 0.9 * budget, sum(kinds[first:]), sent))
    return made


async def chat(
    tokens: int | None, turns: int, size: int, *, rows: int = 0, shows: bool = False
) -> tuple[TestHost, list[Turn]]:
    """Messages of `size` characters each, in a window of `tokens`; None: default settings."""
    random = Random(2)

    def words() -> str:
        return prose(random, size // 5)[:size]

    def reply(request: ModelRequest) -> str:
        return copied(request) if is_summary(request) else words()

    config = {} if tokens is None else window(tokens, date_grounding=False)
    host = host_with(models=[Model("m1", default=reply)], config=config, chat_seconds=SHOWING if shows else 0.0)
    chatter(host, random, rows, 60)
    async with host:
        for turn in range(turns):
            await host.say(f"Turn {turn} is about KEY-{random.randint(100, 9999)}-{turn}. {words()}")
    return host, turns_of(host, budget_of(tokens or 200_000))


async def gaps(tokens: int, words: int) -> int:
    """Of thirty turns, those whose request lacks a row that no summary was told of, with room for it."""
    random, told, number, lost = Random(1), set[str](), 0, 0

    def row(at: int) -> str:
        return f"KEY-100-{at} {prose(random, words)}"

    def reply(request: ModelRequest) -> str:
        if not is_summary(request):
            return row(number + 1)
        told.update(_FACT.findall(request.text))
        return copied(request)

    host = host_with(models=[Model("m1", default=reply)], config=window(tokens, date_grounding=False))
    async with host:
        for turn in range(30):
            number = 2 * turn
            run = await host.say(row(number))
            request = chats(run)[-1]
            known = told | set(_FACT.findall(request.text))
            missing = [old for old in range(number) if f"KEY-100-{old}" not in known]
            lost += bool(missing) and budget_of(tokens) - request.tokens > 400
    return lost


async def kept(facts: Sequence[str], *, fails: bool, turns: int = 200) -> tuple[int, int, int]:
    """Facts and identifiers that stand in the last request of a long chat in 8k, and the summaries it took."""
    random, wanted = Random(3), (*facts, *IDENTIFIERS)

    def reply(request: ModelRequest) -> Reply | str:
        if not is_summary(request):
            return prose(random, 25)
        if fails:
            return "I cannot do that."
        found = [each for each in wanted if each in request.text]
        return "Facts and identifiers:\n" + "\n".join(f"- {each}" for each in found or ["nothing of note so far"])

    host = host_with(models=[Model("m1", default=reply)], config=window(8_192, date_grounding=False))
    async with host:
        for turn in range(turns):
            said = f"{facts[turn // 2]} " if turn % 2 == 0 and turn // 2 < len(facts) else ""
            told = f"The ticket is {IDENTIFIERS[turn]}. " if turn < len(IDENTIFIERS) else ""
            run = await host.say(f"{said}{told}{prose(random, 30)}")
    last = chats(run)[-1].text
    summaries = sum(is_summary(request) for one in host.runs for request in one.requests)
    return sum(fact.rstrip(".。") in last for fact in facts), sum(each in last for each in IDENTIFIERS), summaries


async def pasted(tokens: int = 8_192) -> float:
    """Of the facts in one message of half a window, the share that reach a request for a summary."""
    random, told = Random(1), set[str]()

    def reply(request: ModelRequest) -> str:
        if not is_summary(request):
            return prose(random, 20)
        told.update(_MARK.findall(request.text))
        marks = dict.fromkeys(_MARK.findall(request.last_user))
        return "Facts and identifiers:\n" + "\n".join(f"- {mark} is here" for mark in list(marks)[-60:])

    host = host_with(models=[Model("m1", default=reply)], config=window(tokens, date_grounding=False))
    count = int(tokens * 0.55) // 25
    async with host:
        await host.say(" ".join(f"MARK-{number}-7 is here. {prose(random, 18)}" for number in range(count)))
        for turn in range(60):
            await host.say(f"next {turn}. {prose(random, 60)}")
            checkpoint = stored(host)
            if checkpoint is not None and checkpoint.covers_until is not None and not checkpoint.gaps:
                break
    return len(told) / count


async def hanging(models: int) -> list[float]:
    """Seconds that three messages take whose summariser hangs, at 300 seconds of time (on a steered clock)."""

    def reply(request: ModelRequest) -> Reply:
        return Reply("late", delay=1_000) if is_summary(request) else Reply("Answer.")

    made = [Model(f"m{number}", default=reply) for number in range(models)]
    host = host_with(models=made, config=window(4_096, timeout=300, date_grounding=False))
    chatter(host, Random(1), 60, 40)
    took: list[float] = []
    loop = asyncio.get_running_loop()
    for text in ("now?", "again?", "and now?"):
        began = loop.time()
        await host.say(text)
        took.append(round(loop.time() - began, 1))
    await host.aclose()
    return took


_SCENES: Final = (
    ("60 messages, default settings", None, 60, 250, 0),
    ("30 messages of 2,400 characters at 8k", 8_192, 30, 2_400, 0),
    ("30 messages of 800 characters at 4k", 4_096, 30, 800, 0),
    ("26 messages in a chat of 1,000 rows at 32k", 32_768, 26, 250, 1_000),
)
_SMALL_WINDOWS: Final = ((2_600, 70), (3_000, 90), (4_000, 130), (6_000, 200), (8_192, 260))


def rows() -> Iterator[Row]:
    """The counts as rows of the bench; there is no other runner to compare them with."""
    for name, tokens, turns, size, before in _SCENES:
        _, made = asyncio.run(chat(tokens, turns, size, rows=before))
        yield Row("Context", name, "messages that wait though they fit", None, sum(t.needless for t in made), 0)
        yield Row("Context", name, "messages that wait", None, sum(t.wait > 0 for t in made), 8)
    lost = sum(asyncio.run(gaps(*small)) for small in _SMALL_WINDOWS)
    yield Row("Context", "30 turns in each of five small windows", "turns with rows in neither", None, lost, 0)
    for language, facts in (("English", ENGLISH), ("Chinese", CHINESE)):
        plain, names, made_ = asyncio.run(kept(facts, fails=False))
        name = f"200 turns at 8k, {language}"
        yield Row("Context", name, "summaries", None, made_, 13)
        yield Row("Context", name, "plain facts lost, of 10", None, 10 - plain, 0)
        yield Row("Context", name, "identifiers lost, of 17", None, 17 - names, 0)
        plain, _, _ = asyncio.run(kept(facts, fails=True))
        yield Row("Context", f"{name}, no summariser", "plain facts lost, of 10", None, 10 - plain, 2)
    share = asyncio.run(pasted())
    yield Row(
        "Context", "a message of half a window", "facts told to a summariser", None, round(share, 3), None, "share"
    )
    for models in (1, 2):
        first, second, _ = run_steered(hanging(models))
        name = f"a summariser that hangs, {models} model(s)"
        yield Row("Context", name, "that message", None, first, 46, "s")
        yield Row("Context", name, "the next one", None, second, 1, "s")


# The picture

_WIDTH, _HEIGHT, _LEFT, _TOP = 1_180, 300, 60, 50
_COLOURS: Final = {"tokens": "#2f6fdb", "wait": "#d64545", "late": "#3a9d5d", "line": "#111827", "text": "#1f2937"}


def picture() -> str:
    """Sixty turns at 8k on an adapter that streams and on one that does not, as SVG text: the tokens of each request,
    red where a message waited for a summary, green where one was written behind its answer."""
    budget = budget_of(8_192)
    charts = []
    for place, (name, shows) in enumerate((("streams", True), ("nothing tells of a stream", False))):
        _, made = asyncio.run(chat(8_192, 60, 1_200, shows=shows))
        charts.append(_chart(made, f"60 turns at 8k, 1,200 characters a message: {name}", place * _HEIGHT, budget))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{2 * _HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {2 * _HEIGHT}" font-family="DejaVu Sans, Arial, sans-serif">',
            f'<rect width="{_WIDTH}" height="{2 * _HEIGHT}" fill="white"/>',
            *charts,
            "</svg>\n",
        ]
    )


def _chart(made: Sequence[Turn], name: str, top: int, budget: int) -> str:
    step = (_WIDTH - 2 * _LEFT) / len(made)
    base, scale = top + _HEIGHT - 30, (_HEIGHT - _TOP - 40) / budget
    parts = [_words(_LEFT, top + 24, name, bold=True)]
    waits, late = sum(turn.wait > 0 for turn in made), sum(turn.late > 0 for turn in made)
    told = f"tokens of each request; red: waited for a summary ({waits}); green: folded behind the answer ({late})"
    parts.append(_words(_LEFT, top + 42, told))
    for number, turn in enumerate(made):
        colour = _COLOURS["wait" if turn.wait else "late" if turn.late else "tokens"]
        height = turn.tokens * scale
        x = _LEFT + number * step
        parts.append(
            f'<rect x="{x:.1f}" y="{base - height:.1f}" width="{step - 3:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )
    limit = base - budget * scale
    parts.append(
        f'<rect x="{_LEFT}" y="{limit:.1f}" width="{_WIDTH - 2 * _LEFT}" height="1" fill="{_COLOURS["line"]}"/>'
    )
    parts.append(_words(_WIDTH - _LEFT + 4, limit + 4, f"{budget:,}"))
    return "".join(parts)


def _words(x: float, y: float, words: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="{_COLOURS["text"]}"{weight}>{escape(words)}</text>'
