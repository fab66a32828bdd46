"""Ten first questions of visitors, asked through the real LangBot: `python -m demo first-questions`.

The questions and what counts as a good answer were written before any prompt or tool was tried on them. Writes the
transcript, failures included, to docs/first-questions.md; DEMO_MODEL and MODEL_BASE_URL choose the model as for
`make demo`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from demo.bootstrap import ROOT
from demo.chat import Chat
from demo.records import Records
from demo.stage import Stage
from weights.errors import one_line

PAGE: Final = ROOT / "docs" / "first-questions.md"


@dataclass(frozen=True, slots=True)
class Question:
    """`tool` has to have been called, `pattern` has to be found in the answer; either may be empty.

    In a pattern, `{time}` is the time of day and `{weekday}` the day of the week in Chinese.
    """

    text: str
    tool: str
    pattern: str


ENGLISH: Final[Sequence[Question]] = (
    Question("What is your name?", "", r"LocalAgent"),
    Question("What time is it?", "current_time", r"(?<!\d)({time})(?!\d)"),
    Question("What is 12.5 % of 84?", "calculate", r"10\.5"),
    Question("Note that the milk is empty", "add_note", r"(?i)milk|note"),
    Question("What do I have in my notes?", "list_notes", r"(?i)milk"),
)
CHINESE: Final[Sequence[Question]] = (
    Question("你好，你是谁？", "", r"LocalAgent"),
    Question("今天星期几？", "", r"(星期|周|礼拜){weekday}"),
    Question("5 英里是多少公里？", "convert_units", r"8\.0[45]"),
    Question("帮我记一下：明天下午三点开会", "add_note", r"[记笔会]"),
    Question("我的笔记里有关于开会的内容吗？", "", r"三点|3\s*点|15[:：]00"),
)


def is_good(question: Question, answer: str, tools: Sequence[str], now: datetime) -> bool:
    """Whether an answer of `now`, with the tools that were called for it, is what the visitor asked for."""
    lately = [now - timedelta(minutes=back) for back in range(16)]
    times = {f"{hour}:{then:%M}" for then in lately for hour in (f"{then:%H}", then.hour, then.hour % 12 or 12)}
    weekday = "一二三四五六日"[now.weekday()]
    pattern = question.pattern.replace("{time}", "|".join(sorted(times))).replace("{weekday}", weekday)
    return re.search(pattern, answer) is not None and (not question.tool or question.tool in tools)


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, what the chat showed for it, and the calls it took: the name of each tool and its arguments."""

    question: Question
    answer: str
    calls: Sequence[tuple[str, str]]
    seconds: float
    good: bool


async def ask(stage: Stage, questions: Sequence[Question], say: Callable[[str], None]) -> list[Answered]:
    """The questions in one conversation. Raises DemoError when LangBot does not finish one."""
    records = Records(stage.langbot.database)
    answered = []
    async with Chat(stage.langbot.api, stage.pipeline) as chat:
        for question in questions:
            turn = await chat.ask(question.text, seconds=900)
            run = records.runs(chat.conversation_id)[-1]
            seconds = turn.frames[-1].at - turn.sent_at if turn.frames else 0.0
            calls = records.tools(run.run_id)
            good = is_good(question, turn.answer, [name for name, _ in calls], datetime.now())
            answered.append(Answered(question, turn.answer, calls, seconds, good))
            say(f"{question.text} -> {one_line(turn.answer, 200)} ({'good' if good else 'not good'})")
    return answered


def page(model: str, conversations: Sequence[Sequence[Answered]]) -> str:
    """The transcript as a document."""
    every = [each for conversation in conversations for each in conversation]
    good = sum(each.good for each in every)
    lines = [
        "# First questions of visitors",
        "",
        f"Ten questions, as a visitor of `make demo` might begin, asked through the real LangBot with {model}.",
        "They, and what counts as a good answer, stand in `demo/first_questions.py` and were written before anything",
        "was tried on them; later the check was only made stricter (time and weekday have to be true). To ask again",
        "and write this page: `python -m demo first-questions`. Times are those of a busy machine with two cores.",
        "",
        "Two tries before the first whole one were broken off, since their first answers were wrong. What they showed",
        "was mended in general: the clock knows that `here` is no city, the calculator asks what `7 % 3` means, and",
        "the line behind a successful step asks what was done instead of asking for a next step. So this is one run on",
        "questions that had been seen to fail, and no held-out result.",
        "",
        f"**Good answers: {good} of {len(every)}.**",
    ]
    for heading, conversation in zip(("English", "Chinese"), conversations, strict=True):
        lines += ["", f"## {heading}", *(line for each in conversation for line in _told(each))]
    return "\n".join(lines) + "\n"


def _told(each: Answered) -> Iterator[str]:
    yield ""
    yield f"**{each.question.text}** ({'good' if each.good else 'not good'}, {each.seconds:.0f} s)"
    yield ""
    yield from (f"- `{name}` {arguments}" for name, arguments in each.calls)
    if each.calls:
        yield ""
    yield from (f"> {line}".rstrip() for line in (each.answer or "(no answer)").splitlines())
