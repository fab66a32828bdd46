"""Messages sent while a tool runs join the run, through the real LangBot (G1)."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.bed import Bed
from tests.e2e.doors import Doors
from tests.e2e.group import GroupChat, group_bot
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.toolbox import call, calls

pytestmark = pytest.mark.usefixtures("ours", "tools")

MODES = ("parallel", "serial")


@pytest.mark.parametrize("mode", MODES)
async def test_G1_messages_sent_while_a_tool_runs_are_answered_by_that_run_in_the_order_sent(
    bed: Bed, model: ScriptedModel, doors: Doors, mode: str
) -> None:
    model.script(calls(call("knock", url=doors.url("oak")), text="I knock."), say("The oak is open, no hat needed."))
    async with bed.chat(bed.pipeline(config={"tool-execution-mode": mode})) as chat:
        start, sent_at = len(chat.frames), await chat.send("question-alpha")
        await doors.knocked("oak")
        for text in ("question-beta", "question-gamma"):
            await chat.send(text)
            # LangBot writes a message that a run has claimed into the transcript at once.
            await asyncio.to_thread(bed.wait_for_row, chat.conversation_id, text)
        doors.open("oak")
        await chat.settled(start, 120)
        turn = chat.turn("question-alpha", sent_at, start)
        rows = bed.records.transcript(chat.conversation_id)
        runs = bed.records.runs(chat.conversation_id)
        await chat.ask("question-delta")
    _, second, later = model.requests
    assert [role for role, _ in second.texts if role != "system"] == ["user", "assistant", "tool", "assistant", "user"]
    assert second.holds("door oak opened") == 1
    joined = second.texts[-1][1]
    assert joined.index("question-beta") < joined.index("question-gamma")
    assert [second.holds(f"question-{name}") for name in ("alpha", "beta", "gamma")] == [1, 1, 1]

    assert turn.answer == "I knock.\n\nThe oak is open, no hat needed."
    assert len(turn.cards) == 1
    assert [run.status for run in runs] == ["completed"]
    assert [(row.role, row.text) for row in rows] == [
        ("user", "question-alpha"),
        ("user", "question-beta"),
        ("user", "question-gamma"),
        ("assistant", turn.answer),
    ]
    assert [later.holds(f"question-{name}") for name in ("alpha", "beta", "gamma", "delta")] == [1, 1, 1, 1]


async def test_G1_two_people_of_a_group_are_told_apart_in_one_run(bed: Bed, model: ScriptedModel, doors: Doors) -> None:
    model.script(calls(call("knock", url=doors.url("oak"))), say("Ann, it is open. Bob, no hat needed."), say("Bob."))
    club = GroupChat()
    with club, group_bot(bed, bed.pipeline(), club):
        await asyncio.to_thread(club.says, "ai please knock at the oak", 611, "Ann")
        await doors.knocked("oak")
        await asyncio.to_thread(club.says, "ai do I need a hat?", 612, "Bob")
        await asyncio.to_thread(club.says, "just chatting, not to the bot", 613, "Cid")
        await asyncio.to_thread(bed.wait_for_row, club.conversation, " do I need a hat?")
        doors.open("oak")
        await asyncio.to_thread(club.wait, "answer", lambda: len(club.said) == 1)
        await asyncio.to_thread(bed.wait_for_row, club.conversation, "Ann, it is open. Bob, no hat needed.")
        await asyncio.to_thread(club.says, "ai who asked about the hat?", 611, "Ann")
        await asyncio.to_thread(club.wait, "second answer", lambda: len(club.said) == 2)
        rows = bed.records.transcript(club.conversation)
        runs = bed.records.runs(club.conversation)
    assert club.said == ["Ann, it is open. Bob, no hat needed.", "Bob."]
    assert len(runs) == 2
    assert [row.role for row in rows][:3] == ["user", "user", "assistant"]
    _, second, later = model.requests
    assert second.holds("just chatting") == 0
    asked, followed = (text for role, text in second.texts if role == "user")
    assert "Ann" in asked and "please knock at the oak" in asked
    assert "Bob" in followed and "do I need a hat?" in followed and "Ann" not in followed
    # The next run has only the transcript's actor ids; the names come from the record.
    assert later.holds("do I need a hat?") == 1
    said = next(text for role, text in later.texts if role == "user" and "do I need a hat?" in text)
    assert said.index("Ann") < said.index("please knock") < said.index("Bob") < said.index("do I need a hat?")
