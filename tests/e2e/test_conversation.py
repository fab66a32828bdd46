"""A conversation through the real LangBot, as the web page's chat has it."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, ScriptedModel, say


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
