"""B5, C6, F3, F5, F6, G1: conversations in the web page's chat of the real LangBot, short ones, a long one, and
messages sent across the end of runs.

What that window is depends on the machine; it is printed, not asserted. `WINDOW_PAIRS=100` sends 200 messages."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from runner.context.budget import Budget
from runner.context.tokens import load_tokenizer
from tests.e2e.bed import Bed
from tests.e2e.crossings import PAIRS_PER_CHAT, cross_in_one_chat, moments, table
from tests.e2e.scripted_model import Reply, Request, ScriptedModel, say
from tests.host import violations
from tests.runs.long_chats import PART

# A conversation through the real LangBot, as the web page's chat has it.


async def test_an_answer_reaches_the_page_the_transcript_and_the_ledger(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("Good evening, Ada."))
    async with bed.chat(bed.pipeline()) as chat:
        turn = await chat.ask("Good evening, I am Ada.")
        rows = bed.records.transcript(chat.conversation_id)
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "Good evening, Ada."
    assert [(row.role, row.text) for row in rows] == [
        ("user", "Good evening, I am Ada."),
        ("assistant", "Good evening, Ada."),
    ]
    assert [(run.runner_id, run.status) for run in runs] == [(bed.runner_id, "completed")]
    assert rows[1].run_id == runs[0].run_id


async def test_B5_the_second_request_holds_both_messages_and_the_first_answer_once(
    bed: Bed, model: ScriptedModel
) -> None:
    model.script(say("Noted: heron."), say("It was heron."))
    async with bed.chat(bed.pipeline()) as chat:
        await chat.ask("My word is heron-4711.")
        turn = await chat.ask("Which word was it, kingfisher-4712?")
    assert turn.answer == "It was heron."
    _, second = model.requests
    assert [second.holds(text) for text in ("heron-4711", "Noted: heron.", "kingfisher-4712")] == [1, 1, 1]
    assert [role for role, _ in second.texts if role != "system"] == ["user", "assistant", "user"]


async def test_conversations_of_two_pages_do_not_mix(bed: Bed, model: ScriptedModel) -> None:
    pipeline = bed.pipeline()
    model.script(say("First."), say("Second."))
    async with bed.chat(pipeline) as one:
        await one.ask("only-in-the-first")
    async with bed.chat(pipeline) as other:
        await other.ask("only-in-the-second")
    assert model.requests[1].holds("only-in-the-first") == 0


async def test_C6_two_thousand_chunks_of_emoji_and_chinese_are_whole_in_one_card_and_one_row(
    bed: Bed, model: ScriptedModel
) -> None:
    chunks = tuple(f"{number}号🦜{'家' * (number % 3)}👩‍👩‍👧\n" for number in range(2000))
    model.script(Reply(chunks=chunks))
    async with bed.chat(bed.pipeline()) as chat:
        turn = await chat.ask("Tell me two thousand things.", seconds=900)
        rows = [row for row in bed.records.transcript(chat.conversation_id) if row.role == "assistant"]
    assert turn.answer == "".join(chunks)
    assert len(turn.cards) == 1
    assert [row.text for row in rows] == ["".join(chunks)]


async def test_C6_what_the_page_shows_only_grows(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("One sentence after the other. " * 20, chunk_delay=0.02))
    async with bed.chat(bed.pipeline()) as chat:
        turn = await chat.ask("Talk.")
    shown = [frame.text for frame in turn.frames]
    assert len(shown) > 2
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


@pytest.mark.usefixtures("ours")
async def test_G1_a_message_sent_during_a_run_is_answered_and_asked_once(bed: Bed, model: ScriptedModel) -> None:
    model.script(say("First answer.", gate="go"), say("Second answer."))
    async with bed.chat(bed.pipeline()) as chat:
        start = len(chat.frames)
        sent_at = await chat.send("question-alpha")
        await chat.shows("First")
        await chat.send("question-beta")
        # LangBot writes a message that a run has claimed into the transcript at once.
        await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, "question-beta")
        model.open("go")
        await chat.shows("Second answer.")
        await chat.settled(start, 120)
        turn = chat.turn("question-alpha", sent_at, start)
    assert "First answer." in turn.answer
    assert turn.answer.endswith("Second answer.")
    assert len(model.requests) == 2
    assert [model.requests[1].holds(text) for text in ("question-alpha", "question-beta")] == [1, 1]


# Sixty turns through the real LangBot, in a window that holds a third of them (F3, F5, F6).

TURNS = 60
WINDOW = 8_000
SUMMARY = re.compile(r"<conversation_summary>(.*)</conversation_summary>\Z", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LEAD = re.compile(r"^(?:- )?(?:User: |Assistant: )?")
_WORDS = ("garden", "ladder", "autumn", "kettle", "valley", "ribbon", "cellar", "copper", "willow", "saddle", "pebble")


def prose(random: Random, words: int) -> str:
    said = [random.choice(_WORDS) for _ in range(words)]
    return " ".join(" ".join(said[at : at + 8]).capitalize() + "." for at in range(0, words, 8))


def newest(request: Request) -> str:
    return next(text for role, text in reversed(request.texts) if role == "user")


def is_summary(request: Request) -> bool:
    return PART in newest(request)


def copying(random: Random) -> Callable[[Request], Reply]:
    """A model that chats about nothing and summarises by copying sentences: those that ask to be remembered, then the
    newest, up to the number of words it is asked for."""

    def reply(request: Request) -> Reply:
        if not is_summary(request):
            return say(prose(random, 70), size=60)
        limit = re.search(r"About (\d+) words", request.texts[0][1])
        assert limit is not None
        text = re.sub(r"</?conversation_part[^>]*>", "\n", newest(request))
        sentences = dict.fromkeys(_LEAD.sub("", one.strip()) for one in _SENTENCE.split(text) if len(one.split()) > 3)
        wanted = [one for one in sentences if "remember" in one.lower()]
        wanted += [one for one in reversed(sentences) if one not in wanted]
        kept: list[str] = []
        for sentence in wanted:
            if sum(len(one.split()) for one in kept) + len(sentence.split()) <= int(limit[1]):
                kept.append(sentence)
        return say("Facts and identifiers:\n" + "\n".join(f"- {one}" for one in kept), size=200)

    return reply


@pytest.mark.usefixtures("ours")
async def test_F5_a_fact_of_turn_3_stands_in_the_request_of_turn_60_as_the_endpoint_got_it(
    bed: Bed, model: ScriptedModel
) -> None:
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    sys.stdout.write(f"SEED={seed}\n")
    random = Random(seed)
    fact = f"{random.choice('QXZ')}{random.randint(1_000, 9_999)}-{random.choice(_WORDS)}"
    model.script(otherwise=copying(random))
    pipeline = bed.pipeline(config={"context-window-tokens": WINDOW, "advanced-settings": True})
    said: list[str] = []
    async with bed.chat(pipeline) as chat:
        for turn in range(1, TURNS + 1):
            told = f"Please remember that the vault opens with {fact}. " if turn == 3 else ""
            said.append(f"{told}This is turn {turn} of the talk. {prose(random, 80)}")
            shown = await chat.ask(said[-1], seconds=120)
            assert shown.answer, f"turn {turn} got no answer"
            assert "conversation_" not in shown.answer
        rows = bed.records.transcript(chat.conversation_id)
        runs = bed.records.runs(chat.conversation_id)
    assert [run.status for run in runs] == ["completed"] * TURNS
    assert [row.text for row in rows if row.role == "user"] == said
    requests = model.requests
    await assert_all_legal_and_within(requests)
    answers = [request for request in requests if not is_summary(request)]
    assert len(answers) == TURNS
    assert [
        turn for turn, (request, text) in enumerate(zip(answers, said, strict=True), 1) if request.holds(text) != 1
    ] == []
    summaries = len(requests) - len(answers)
    assert 2 <= summaries <= TURNS // 3, "a summary serves several turns"
    assert_remembered(answers[-1], fact)


async def assert_all_legal_and_within(requests: list[Request]) -> None:
    tokenizer = await load_tokenizer()
    budget = Budget.of(WINDOW, 16_384).input
    for request in requests:
        assert violations(request.messages, request.body.get("tools") or None) == []
        assert sum(tokenizer.estimate(text) for _, text in request.texts) <= budget
        assert not (is_summary(request) and request.body.get("tools"))


def assert_remembered(last: Request, fact: str) -> None:
    """The fact stands in the summary, and the turn it was said in is long gone from the conversation."""
    summary = SUMMARY.search(last.texts[0][1])
    assert summary is not None
    assert fact in summary[1]
    assert sum(text.count("This is turn 3 of the talk.") for role, text in last.texts if role != "system") == 0


@pytest.mark.usefixtures("ours")
async def test_F6_a_new_conversation_knows_nothing_of_the_one_before(bed: Bed, model: ScriptedModel) -> None:
    random = Random(7)
    model.script(otherwise=copying(random))
    pipeline = bed.pipeline(config={"context-window-tokens": 2_000, "advanced-settings": True})
    async with bed.chat(pipeline) as chat:
        for turn in range(8):
            await chat.ask(f"Please remember the number 4711-{turn}. {prose(random, 150)}", seconds=120)
        assert any(SUMMARY.search(request.texts[0][1]) for request in model.requests)
    async with bed.chat(pipeline) as chat:
        await chat.ask("Hello, who are you?", seconds=120)
    assert model.requests[-1].holds("4711-") == 0


# Messages sent across the end of runs, through the real LangBot: none is lost without a trace (G1).
#
# What the window is depends on the machine; it is printed, not asserted. `WINDOW_PAIRS=100` sends 200 messages.

PAIRS = int(os.environ.get("WINDOW_PAIRS", "20"))


@pytest.mark.usefixtures("ours")
async def test_G1_every_message_across_the_end_of_a_run_is_answered_once_or_named_as_dropped(
    bed: Bed, model: ScriptedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    crossings = []
    pipeline = bed.pipeline()
    for begin in range(0, PAIRS, PAIRS_PER_CHAT):
        crossings += await cross_in_one_chat(bed, model, pipeline, begin, moments(PAIRS))
    with capsys.disabled():
        sys.stdout.write(f"\n{table(crossings)}\n")
    assert [crossing.answers for crossing in crossings] == [0 if c.fate == "dropped" else 1 for c in crossings]
    assert [crossing.strangers for crossing in crossings] == [0] * PAIRS
