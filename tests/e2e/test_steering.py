"""G1, G2: messages sent while a tool runs join the run, and a run is stopped from outside.

LangBot 4.11.2 has no button or command for stopping: only a plugin listed in `runner.admin_plugins` may ask, so
those tests start a LangBot of their own with the toolbox plugin listed there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
import yaml

from demo import langbot, package, ports
from demo.chat import Chat
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.bots import GroupChat, group_bot
from tests.e2e.scripted_model import Reply, ScriptedModel, say
from tests.e2e.served import Doors
from tests.e2e.toolbox import PLUGIN, call, calls, plugin_installed

# Messages sent while a tool runs join the run, through the real LangBot (G1).

MODES = ("parallel", "serial")


@pytest.mark.usefixtures("ours", "tools")
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


@pytest.mark.usefixtures("ours", "tools")
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


# Stopping a run from outside, through the real LangBot (G2).
#
# LangBot 4.11.2 has no button or command for it: only a plugin listed in `runner.admin_plugins` may ask, so this file
# starts a LangBot of its own with the toolbox plugin listed there.


def _allow_to_stop_runs(folder: Path) -> None:
    """LangBot's own settings, with the toolbox as an administrator of runs; no environment variable can say this."""
    settings = yaml.safe_load(resources.files("langbot").joinpath("templates/config.yaml").read_text(encoding="utf-8"))
    who = package.identity(PLUGIN)
    settings["runner"]["admin_plugins"] = [{"identity": f"{who.author}/{who.name}", "permissions": ["agent_run:admin"]}]
    data = folder / "data"
    data.mkdir(parents=True)
    (data / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")


@pytest.fixture(scope="module")
def admin_bed(plugin_folder: Path, scripted: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = tmp_path_factory.mktemp("langbot-admin")
    _allow_to_stop_runs(folder)
    built = package.build(plugin_folder, folder / "dist")
    with Children() as children:
        bot = langbot.start(children, folder, ports.choose(), folder / "logs")
        bed = furnish(bot, plugin_folder, built, package.identity(plugin_folder), scripted)
        with plugin_installed(bed, folder / "dist"):
            yield bed


async def stop(bed: Bed, model: ScriptedModel, conversation_id: str) -> None:
    """Let the administrator's tool stop the runs of a conversation, by way of another chat with another model."""
    keeper = bed.model("keeper")
    async with bed.chat(bed.pipeline(primary=keeper)) as chat:
        turn = await chat.ask(f"stop {conversation_id}")
    assert turn.answer == "They are asked."
    stopping = [request for request in model.requests if request.model == "keeper"]
    assert len(stopping) == 2
    (run,) = bed.records.runs(conversation_id)[-1:]
    assert stopping[1].holds(run.run_id) == 1, "the tool found the run and asked the Host"


def keeper(conversation_id: str) -> tuple[Reply, Reply]:
    asked = call("stop_runs", conversation=conversation_id)
    return Reply(calls=(asked,), for_model="keeper"), say("They are asked.", for_model="keeper")


async def check_it_is_over(bed: Bed, chat: Chat, start: int) -> None:
    """The Host has marked the run cancelled, and the next message is answered by a run of its own."""
    await chat.settled(start, 60)
    assert [run.status for run in bed.records.runs(chat.conversation_id)] == ["cancelled"]


@pytest.mark.usefixtures("ours")
async def test_G2_a_waiting_stream_is_stopped_and_what_was_shown_stays(admin_bed: Bed, model: ScriptedModel) -> None:
    async with admin_bed.chat(admin_bed.pipeline()) as chat:
        model.script(
            Reply(chunks=("Once upon a time ", "never sent"), gate="never", for_model="scripted"),
            *keeper(chat.conversation_id),
        )
        start, sent_at = len(chat.frames), await chat.send("Tell me a story.")
        await chat.shows("Once upon a time")
        await stop(admin_bed, model, chat.conversation_id)
        await check_it_is_over(admin_bed, chat, start)
        turn = chat.turn("Tell me a story.", sent_at, start)
        rows = admin_bed.records.transcript(chat.conversation_id)
        model.script(say("A new story."))
        after = await chat.ask("Another one.")
        runs = admin_bed.records.runs(chat.conversation_id)
    assert turn.answer.startswith("Once upon a time") and "never sent" not in turn.answer
    assert len(turn.answer) > len("Once upon a time"), "marked as stopped"
    assert len(turn.cards) == 1
    assert [(row.role, row.text) for row in rows] == [("user", "Tell me a story."), ("assistant", turn.answer)]
    assert after.answer == "A new story."
    assert [run.status for run in runs] == ["cancelled", "completed"]
    assert model.requests[0].holds("Once upon a time") == 1


@pytest.mark.usefixtures("ours")
async def test_G2_a_waiting_tool_is_stopped_and_its_call_is_not_left_open(
    admin_bed: Bed, model: ScriptedModel, doors: Doors
) -> None:
    async with admin_bed.chat(admin_bed.pipeline()) as chat:
        model.script(
            Reply(chunks=("I knock.",), calls=(call("knock", url=doors.url("oak")),), for_model="scripted"),
            *keeper(chat.conversation_id),
        )
        start, sent_at = len(chat.frames), await chat.send("Knock, please.")
        await doors.knocked("oak")
        await chat.shows("I knock.")
        await stop(admin_bed, model, chat.conversation_id)
        await check_it_is_over(admin_bed, chat, start)
        turn = chat.turn("Knock, please.", sent_at, start)
        rows = admin_bed.records.transcript(chat.conversation_id)
        model.script(say("Nobody opened."))
        after = await chat.ask("And?")
    assert doors.log == ["knock oak"], "nobody opened the door: the run did not wait for its tool"
    assert turn.answer.startswith("I knock.") and len(turn.answer) > len("I knock.")
    assert [(row.role, row.text) for row in rows] == [("user", "Knock, please."), ("assistant", turn.answer)]
    assert after.answer == "Nobody opened."
    made = [made["id"] for message in model.requests[0].messages for made in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in model.requests[0].messages if message["role"] == "tool"]
    assert made == answered


@pytest.mark.usefixtures("ours")
async def test_G2_a_run_that_has_shown_nothing_is_stopped_without_a_word(
    admin_bed: Bed, model: ScriptedModel, doors: Doors
) -> None:
    async with admin_bed.chat(admin_bed.pipeline()) as chat:
        model.script(
            Reply(calls=(call("knock", url=doors.url("oak")),), for_model="scripted"), *keeper(chat.conversation_id)
        )
        start, sent_at = len(chat.frames), await chat.send("Knock, please.")
        await doors.knocked("oak")
        await stop(admin_bed, model, chat.conversation_id)
        await check_it_is_over(admin_bed, chat, start)
        turn = chat.turn("Knock, please.", sent_at, start)
        rows = admin_bed.records.transcript(chat.conversation_id)
    assert turn.frames == ()
    assert [row.role for row in rows] == ["user"]
