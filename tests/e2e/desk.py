"""Ten everyday tasks for a small model behind the real LangBot, and whether each was done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.bed import Bed
from tests.e2e.recorder import Exchange, Recorder

PLUGIN = Path(__file__).parent / "plugins" / "desk"

_MARKUP = re.compile(
    r"</?tool|<\||\[TOOL|```(?:json|tool)|\"(?:name|arguments|parameters)\"\s*:|reply_to_user|<function|</?think"
)


@dataclass(frozen=True, slots=True)
class Task:
    """`ran`: what tools must have told the model; `says`: what the answer must hold. Both as regular expressions."""

    question: str
    ran: tuple[str, ...] = ()
    says: str = r"\w"


TASKS = (
    Task("What is the weather in Oslo right now?", (r"Oslo: \d+ degrees",), r"\d+"),
    Task("Where is my parcel PX-204?", (r"Parcel PX-204 is at depot D\d+",), r"D\d{3}"),
    Task("Remind me to water the plants in 45 minutes.", (r"Reminder R7045 is set",)),
    Task("What is 128 * 46?", (r"= 5888",), r"5,?888"),
    Task(
        "Is it warmer in Lima or in Cairo at the moment?", (r"Lima: \d+ degrees", r"Cairo: \d+ degrees"), r"Lima|Cairo"
    ),
    Task("Thanks, you have been very helpful!"),
    Task("帮我查一下包裹 PX-377 在哪里。", (r"Parcel PX-377 is at depot D\d+",), r"D\d{3}"),
    Task("Please add 19.5 and 22.25 and divide the sum by 5.", (r"= 8\.35",), r"8[.,]35"),
    Task("Set a reminder to call Mia, 20 minutes from now.", (r"Reminder R7020 is set",)),
    Task(
        "Track parcel PX-12, and remind me in 60 minutes to fetch it.",
        (r"Parcel PX-12 is at depot D\d+", r"Reminder R7060 is set"),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task. `requests` went to the model, `guided` of them with a schema; `markup` was shown."""

    task: Task
    answer: str
    done: bool
    markup: bool
    requests: int
    guided: int


def shows_markup(text: str) -> bool:
    """Whether a text of the chat holds anything of a call's form."""
    return _MARKUP.search(text) is not None


async def play(bed: Bed, recorder: Recorder, model: str, task: Task, settings: dict[str, object]) -> Outcome:
    """One task in a conversation of its own; `model` is LangBot's id of the model behind the recorder."""
    before = len(recorder.exchanges)
    async with bed.chat(bed.pipeline(model, config=settings)) as chat:
        turn = await chat.ask(task.question, seconds=900)
    exchanges = recorder.exchanges[before:]
    shown = [frame.text for frame in turn.frames]
    return Outcome(
        task=task,
        answer=turn.answer,
        done=_ran(task, exchanges) and re.search(task.says, turn.answer) is not None,
        markup=any(map(shows_markup, shown)),
        requests=len(exchanges),
        guided=sum(exchange.guided for exchange in exchanges),
    )


def _ran(task: Task, exchanges: Sequence[Exchange]) -> bool:
    """Whether the tools ran as wanted; for small talk, that none did."""
    told = "\n".join(exchange.text for exchange in exchanges)
    if not task.ran:
        return len(exchanges) == 1
    return all(re.search(wanted, told) for wanted in task.ran)
