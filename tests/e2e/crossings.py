"""Messages sent across the end of a run, and what became of each (G1).

LangBot claims a message for a run as long as that run is registered. What it claims after the run's last look for
follow-ups gets no reply: LangBot writes `steering.dropped` for it. The stretch of time in which that can happen is the
window. It is estimated from outside: second messages are sent at evenly spread moments after the model's last word, so
the share of dropped ones times the spread is the window.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from demo.chat import Chat
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, ScriptedModel


@dataclass(frozen=True, slots=True)
class Crossing:
    """One second message. `delay`: seconds after the model's last word; `fate`: joined, own run, or dropped.

    `answers`: how many stored answers hold its echo; `strangers`: how many hold another pair's.
    """

    delay: float
    fate: str
    answers: int
    strangers: int


PAIRS_PER_CHAT = 10


def moments(pairs: int, spread: float = 0.8) -> list[float]:
    """The delay of each second message, in seconds: evenly spread from the model's last word until well after the end
    of a run, and shuffled, so that a long history does not go with a long delay."""
    delays = [spread * number / (pairs - 1) for number in range(pairs)]
    return [delays[number * 37 % pairs] if pairs % 37 else delays[number] for number in range(pairs)]


async def cross_in_one_chat(
    bed: Bed, model: ScriptedModel, pipeline: str, begin: int, delays: Sequence[float]
) -> list[Crossing]:
    """The pairs from number `begin` on that belong into one chat, with their delays."""
    async with bed.chat(pipeline) as chat:
        pairs = list(enumerate(delays))[begin : begin + PAIRS_PER_CHAT]
        return [await cross(bed, model, chat, number, delay) for number, delay in pairs]


def window(crossings: Sequence[Crossing]) -> float:
    """Seconds, estimated: the delays have to be evenly spread."""
    delays = [crossing.delay for crossing in crossings]
    step = (max(delays) - min(delays)) / (len(delays) - 1)
    return step * sum(crossing.fate == "dropped" for crossing in crossings)


def table(crossings: Sequence[Crossing]) -> str:
    """The fates in order of delay, one letter each (j, o, d), and the sums."""
    ordered = sorted(crossings, key=lambda crossing: crossing.delay)
    fates = [crossing.fate for crossing in ordered]
    dropped = [crossing.delay * 1000 for crossing in ordered if crossing.fate == "dropped"]
    span = (
        f", dropped between {min(dropped):.0f} and {max(dropped):.0f} ms after the model's last word" if dropped else ""
    )
    return (
        f"{2 * len(fates)} messages, {len(fates)} of them across the end of a run: {fates.count('joined')} joined, "
        f"{fates.count('own run')} had a run of their own, {fates.count('dropped')} dropped{span}; "
        f"window about {window(crossings) * 1000:.0f} ms\n{''.join(fate[0] for fate in fates)}"
    )


async def cross(bed: Bed, model: ScriptedModel, chat: Chat, number: int, delay: float) -> Crossing:
    """One pair: a first message, and a second one `delay` seconds after the model's last word for the first."""
    first, second = f"first-{number:03}.", f"second-{number:03}."
    gate = f"gate-{number}"
    model.script(Reply(chunks=(f"Answer to {first} ", "It is all I know."), gate=gate))
    start = len(chat.frames)
    await chat.send(first)
    await chat.shows(f"Answer to {first}")
    model.open(gate)
    await asyncio.sleep(delay)
    await chat.send(second)
    await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, second)
    await chat.settled(start, 60)
    return Crossing(delay, *_fate(bed, chat.conversation_id, first, second))


def _fate(bed: Bed, conversation: str, first: str, second: str) -> tuple[str, int, int]:
    rows = bed.records.transcript(conversation)
    answers = [row.text for row in rows if row.role == "assistant"]
    mine = [text for text in answers if f"echo: {second}" in text]
    strangers = [text for text in answers if text.count("Answer to first-") > 1 or text.count("echo: second-") > 1]
    if second in dropped_messages(bed, conversation):
        return "dropped", len(mine), len(strangers)
    joined = any(f"Answer to {first}" in text for text in mine)
    return "joined" if joined else "own run", len(mine), len(strangers)


def dropped_messages(bed: Bed, conversation: str) -> set[str]:
    """Texts of the messages that LangBot claimed for a run which ended without looking."""
    query = (
        "select t.content from event_log d join transcript t"
        " on t.event_id = json_extract(d.metadata_json, '$.steering.original_event_id')"
        " where d.event_type = 'steering.dropped' and d.conversation_id = ?"
    )
    with closing(sqlite3.connect(f"file:{bed.langbot.database}?mode=ro", uri=True, timeout=10)) as rows:
        return {str(text) for (text,) in rows.execute(query, (conversation,))}
