"""Stopping a run from outside, through the real LangBot (G2).

LangBot 4.11.2 has no button or command for it: only a plugin listed in `runner.admin_plugins` may ask, so this file
starts a LangBot of its own with the toolbox plugin listed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
import yaml

from demo import langbot, package, ports
from demo.chat import Chat
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.doors import Doors
from tests.e2e.scripted_model import Reply, ScriptedModel, say
from tests.e2e.toolbox import PLUGIN, call, plugin_installed

pytestmark = pytest.mark.usefixtures("ours")


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
