"""Pictures, voices, files and quotes through the real LangBot: in a private chat, in a group, while a run goes on (B4).

Two doors of LangBot: its own page, where everything comes with its bytes, and a OneBot platform, where it comes by
address. Each test reads what the model's endpoint received and what the person got.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from demo.chat import Chat
from tests.e2e.bed import Bed
from tests.e2e.bots import GroupChat, group_bot
from tests.e2e.onebot import (
    ADDRESS,
    BOT_ACCOUNT,
    PICTURE,
    QUOTED,
    QUOTED_PICTURE,
    blind,
    file,
    last_said,
    picture,
    pictures,
    posted_file,
    posted_picture,
    posted_quote,
    posted_voice,
    quote,
    segment,
    voice,
)
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.served import Doors
from tests.e2e.toolbox import call, calls, request

pytestmark = pytest.mark.usefixtures("ours")

NOTE = "[The model does not take images, so they were left out.]"
UNSEEN = "this model cannot see pictures"
LARGE = int(os.environ.get("E2E_PICTURE_CHARACTERS", "15000000"))
"""Characters of base64 of the large picture; each hop between LangBot and plugin takes seconds for so many."""

CALLED = segment("at", qq=str(BOT_ACCOUNT))
"""What makes a message of the group one to the bot."""


@pytest.fixture(scope="module")
def pipeline(bed: Bed) -> str:
    return bed.pipeline()


@pytest.fixture(scope="module")
def club(bed: Bed, pipeline: str) -> Iterator[GroupChat]:
    platform = GroupChat()
    with platform, group_bot(bed, pipeline, platform):
        yield platform


def quiet(bed: Bed, pipeline: str) -> None:
    """Switch the pipeline's quoting off."""
    config = request(bed, "GET", f"/pipelines/{pipeline}")["pipeline"]["config"]
    config["trigger"]["misc"]["combine-quote-message"] = False
    request(bed, "PUT", f"/pipelines/{pipeline}", json={"config": config})


# On the page: with their bytes


@pytest.mark.parametrize("kind", ["person", "group"])
async def test_B4_B5_on_the_page_everything_comes_with_its_bytes_and_is_words_in_the_next_request(
    bed: Bed, model: ScriptedModel, pipeline: str, kind: str
) -> None:
    model.script(say("Seen."), say("Yes."))
    async with Chat(bed.langbot.api, pipeline, kind) as chat:
        turn = await chat.ask("ai Is that so?", files=[quote(), picture(), voice(), file("plan.pdf")])
        second = await chat.ask("ai Sure?")
    assert turn.answer.endswith("Seen.") and second.answer.endswith("Yes.")
    first, later = model.requests
    said = last_said(first)
    assert pictures(first) == [QUOTED_PICTURE, PICTURE]
    assert "Is that so?\n" in said and f"{QUOTED}\n" in said
    for words in ("[file: agenda.pdf, 9 bytes]", "[file: plan.pdf, 9 bytes]", "[voice: voice.silk, 6 bytes]"):
        assert said.count(words) == 1
    assert said.startswith("[User]") is (kind == "group")
    assert pictures(later) == []
    before = next(text for role, text in later.texts if role == "user")
    assert [before.count(words) for words in ("[image]", "[voice message]", "[file: plan.pdf]", QUOTED)] == [2, 1, 1, 1]


async def test_B4_each_alone_without_a_word_is_a_message(bed: Bed, model: ScriptedModel, pipeline: str) -> None:
    alone = [picture(), voice(), file("plan.pdf")]
    model.script(*(say(f"Seen {number}.") for number in range(3)))
    async with bed.chat(pipeline) as chat:
        turns = [await chat.ask("", files=[one]) for one in alone]
    assert [turn.answer for turn in turns] == ["Seen 0.", "Seen 1.", "Seen 2."]
    seen, heard, read = model.requests
    assert (pictures(seen), last_said(seen)) == ([PICTURE], "")
    assert last_said(heard) == "[voice: voice.silk, 6 bytes]"
    assert last_said(read) == "[file: plan.pdf, 9 bytes]"


async def test_B4_where_the_pipeline_leaves_quotes_out_the_message_is_answered_without(
    bed: Bed, model: ScriptedModel
) -> None:
    own = bed.pipeline()
    quiet(bed, own)
    model.script(say("Which meeting?"))
    async with bed.chat(own) as chat:
        turn = await chat.ask("Is that so?", files=[quote(), picture()])
    assert turn.answer == "Which meeting?"
    assert (last_said(model.requests[0]), pictures(model.requests[0])) == ("Is that so?", [PICTURE])


# On a platform: by their addresses


@pytest.mark.parametrize("kind", ["private", "group"])
async def test_B4_B5_on_a_platform_everything_comes_by_its_address_and_is_words_in_the_next_request(
    bed: Bed, model: ScriptedModel, club: GroupChat, kind: str
) -> None:
    parts = [posted_quote(club), posted_picture(), posted_voice(), posted_file("plan.pdf", by_id=True)]
    write = club.private if kind == "private" else club.says
    called = [] if kind == "private" else [CALLED]
    model.script(say("Seen."), say("Yes."))
    club.forget()
    await asyncio.to_thread(write, "Is that so?", 621, "Ann", [*called, *parts])
    await asyncio.to_thread(club.wait, "answer", lambda: club.said == ["Seen."])
    conversation = club.conversation if kind == "group" else "person_621"
    await asyncio.to_thread(bed.wait_for_row, conversation, "Seen.")
    await asyncio.to_thread(write, "Sure?", 621, "Ann", called)
    await asyncio.to_thread(club.wait, "second answer", lambda: club.said == ["Seen.", "Yes."])
    first, later = model.requests
    said = last_said(first)
    assert pictures(first) == [f"{ADDRESS}/earlier.png", f"{ADDRESS}/photo.png"]
    assert f"{QUOTED}\nIs that so?\n" in said
    assert [said.count(words) for words in ("[file: agenda.pdf", "[file: plan.pdf", "[voice: voice")] == [1, 1, 2]
    assert said.startswith("[Ann] ") is (kind == "group")
    assert pictures(later) == []
    before = next(text for role, text in later.texts if role == "user")
    assert [before.count(words) for words in ("[image]", "[voice message]", "[file: agenda.pdf]")] == [2, 2, 1]


# While a run goes on


@pytest.mark.usefixtures("tools")
async def test_G1_on_the_page_a_follow_up_brings_its_picture_and_its_files_in_words(
    bed: Bed, model: ScriptedModel, pipeline: str, doors: Doors
) -> None:
    model.script(calls(call("knock", url=doors.url("oak"))), say("Seen."))
    async with bed.chat(pipeline) as chat:
        start, sent_at = len(chat.frames), await chat.send("Knock")
        await doors.knocked("oak")
        await chat.send("Is that so?", files=[quote(), picture(), voice(), file("plan.pdf")])
        await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, "Is that so?")
        doors.open("oak")
        await chat.settled(start, 120)
        turn = chat.turn("Knock", sent_at, start)
    assert turn.answer == "Seen."
    _, second = model.requests
    assert pictures(second) == [PICTURE]
    # LangBot hands follow-ups over as they came: without what they quote.
    assert last_said(second) == "Is that so?\n[voice: unnamed, 6 bytes]\n[file: plan.pdf, 9 bytes]"


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("kind", ["private", "group"])
async def test_G1_on_a_platform_a_follow_up_brings_its_picture_and_its_files_in_words(
    bed: Bed, model: ScriptedModel, club: GroupChat, doors: Doors, kind: str
) -> None:
    write = club.private if kind == "private" else club.says
    called = [] if kind == "private" else [CALLED]
    parts = [posted_quote(club), posted_picture(), posted_voice(), posted_file("plan.pdf")]
    model.script(calls(call("knock", url=doors.url("elm"))), say("Seen."))
    club.forget()
    await asyncio.to_thread(write, "Knock", 631, "Ann", called)
    await doors.knocked("elm")
    user, name = (631, "Ann") if kind == "private" else (632, "Bob")
    await asyncio.to_thread(write, "And that?", user, name, [*called, *parts])
    conversation = club.conversation if kind == "group" else "person_631"
    await asyncio.to_thread(bed.wait_for_row, conversation, "And that?")
    doors.open("elm")
    await asyncio.to_thread(club.wait, "answer", lambda: club.said == ["Seen."])
    _, second = model.requests
    assert pictures(second) == [f"{ADDRESS}/photo.png"]
    said = last_said(second)
    assert [said.count(words) for words in ("And that?", "[file: plan.pdf", "[voice: ")] == [1, 1, 1]
    assert said.startswith("[Bob] ") is (kind == "group")


@pytest.mark.usefixtures("tools")
async def test_G1_a_follow_up_too_large_to_be_handed_over_is_heard_in_words(
    bed: Bed, model: ScriptedModel, pipeline: str, doors: Doors
) -> None:
    model.script(calls(call("knock", url=doors.url("ash"))), say("I could not see it."))
    async with bed.chat(pipeline) as chat:
        start, sent_at = len(chat.frames), await chat.send("Knock")
        await doors.knocked("ash")
        await chat.send("What is this?", files=[picture("data:image/png;base64," + "A" * 9_000_000)])
        await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, "What is this?")
        doors.open("ash")
        await chat.settled(start, 120)
        turn = chat.turn("Knock", sent_at, start)
    assert turn.answer == "I could not see it."
    assert last_said(model.requests[1]) == "What is this?\n[image]"


# Models that cannot see


async def test_B4_a_model_without_vision_reads_a_word_for_the_picture(bed: Bed, model: ScriptedModel) -> None:
    unseeing = bed.model("without vision", abilities=("func_call",))
    model.script(otherwise=blind)
    async with bed.chat(bed.pipeline(unseeing)) as chat:
        turn = await chat.ask("What is this?", files=[picture()])
    assert turn.answer == "I cannot see it."
    (sent,) = model.requests
    assert (pictures(sent), last_said(sent)) == ([], "What is this?\n[Image]")


@pytest.mark.usefixtures("tools")
async def test_G1_B4_a_model_without_vision_is_asked_again_without_the_picture_of_a_follow_up(
    bed: Bed, model: ScriptedModel, doors: Doors
) -> None:
    unseeing = bed.model("without vision", abilities=("func_call",))
    model.script(calls(call("knock", url=doors.url("yew"))), otherwise=blind)
    async with bed.chat(bed.pipeline(unseeing)) as chat:
        start, sent_at = len(chat.frames), await chat.send("Knock")
        await doors.knocked("yew")
        await chat.send("What is this?", files=[picture()])
        await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, "What is this?")
        doors.open("yew")
        await chat.settled(start, 120)
        turn = chat.turn("Knock", sent_at, start)
    assert turn.answer == f"I cannot see it.\n\n{NOTE}"
    assert [len(pictures(sent)) for sent in model.requests] == [0, 1, 0]
    assert UNSEEN in last_said(model.requests[-1])


async def test_C1_B4_a_fallback_without_vision_answers_without_the_picture_and_says_so(
    bed: Bed, model: ScriptedModel
) -> None:
    away, unseeing = bed.model("seeing", up=False), bed.model("without vision", abilities=("func_call",))
    model.script(otherwise=blind)
    async with bed.chat(bed.pipeline(away, [unseeing])) as chat:
        turn = await chat.ask("What is this?", files=[picture()])
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == f"I cannot see it.\n\n{NOTE}"
    first, second = model.requests
    assert {first.model, second.model} == {"without vision"}
    assert [pictures(first), pictures(second)] == [[PICTURE], []]
    assert UNSEEN in last_said(second)
    assert [run.status for run in runs] == ["completed"]


# A large one


@pytest.mark.usefixtures("tools")
async def test_B4_B5_a_picture_of_15_mb_reaches_the_model_and_one_that_refuses_it_answers_without(
    bed: Bed, model: ScriptedModel, pipeline: str
) -> None:
    model.script(otherwise=blind)
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask(f"poster {LARGE}")
        first, again = model.requests
        model.script(say("Yes."))
        second = await chat.ask("Sure?")
        runs = bed.records.runs(chat.conversation_id)
    assert (turn.answer, second.answer) == (f"I cannot see it.\n\n{NOTE}", "Yes.")
    assert [len(url) for url in pictures(first)] == [len("data:image/png;base64,") + LARGE]
    assert pictures(again) == [] and UNSEEN in last_said(again)
    (later,) = model.requests
    assert pictures(later) == [] and later.holds("[image]") == 1
    assert [run.status for run in runs] == ["completed", "completed"]
