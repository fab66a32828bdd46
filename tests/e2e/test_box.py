"""The sandbox through the real LangBot, with the real `lbp box` on its host backend (H1-H4). That backend isolates
nothing: it is for tests."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import langbot, package, ports
from demo.langbot import base_environment, program
from demo.ports import LOOPBACK
from demo.processes import Children
from tests.e2e.bed import Bed, furnish
from tests.e2e.bots import Agents, GroupChat
from tests.e2e.onebot import segment
from tests.e2e.scripted_model import Call, Reply, Request, ScriptedModel, say
from tests.e2e.served import Doors
from tests.e2e.toolbox import offered

pytestmark = pytest.mark.usefixtures("ours")

CSV = b"name,age\nAda,36\nAlan,41\n"
SANDBOX = {"exec", "read", "write", "edit", "glob", "grep"}


@pytest.fixture(scope="module")
def box_bed(plugin_folder: Path, scripted: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """A LangBot of its own, joined to a sandbox runtime."""
    folder = tmp_path_factory.mktemp("langbot-box")
    (port,) = ports.free_ports(1)
    token = secrets.token_urlsafe(32)
    settings = {
        "BOX__ENABLED": "true",
        "BOX__BACKEND": "host",
        "BOX__RUNTIME__ENDPOINT": f"ws://{LOOPBACK}:{port}",
        "LANGBOT_BOX_CONTROL_TOKEN": token,
    }
    built = package.build(plugin_folder, folder / "dist")
    with Children() as children:
        children.start(
            "sandbox runtime",
            [program("lbp"), "box", "--host", LOOPBACK, "--ws-control-port", str(port)],
            folder,
            {**base_environment(secrets.token_urlsafe(48)), "LANGBOT_BOX_CONTROL_TOKEN": token},
            folder / "logs" / "box.log",
        )
        bot = langbot.start(children, folder, ports.choose(), folder / "logs", settings)
        yield furnish(bot, plugin_folder, built, package.identity(plugin_folder), scripted)


def call(name: str, **arguments: object) -> Reply:
    return Reply(calls=(Call(name, json.dumps(arguments)),))


def outbox_in(request: Request) -> str:
    found = re.search(r"/workspace/outbox/[\w-]+", "\n".join(text for _, text in request.texts))
    assert found is not None
    return found.group()


def csv_file(name: str = "people.csv", body: bytes = CSV) -> dict[str, str]:
    return {"type": "File", "name": name, "base64": "data:text/csv;base64," + base64.b64encode(body).decode()}


async def test_H1_H2_H3_a_file_comes_in_is_worked_on_and_another_goes_out(box_bed: Bed, model: ScriptedModel) -> None:
    command = (
        "mkdir -p /workspace/outbox/$(ls -t /workspace/inbox | head -1 | sed s/-attachment-0//) && "
        "cd /workspace/outbox/$(ls -t /workspace/inbox | head -1 | sed s/-attachment-0//) && "
        "tail -n +2 /workspace/inbox/*/people.csv | wc -l > count.txt && cat count.txt"
    )
    model.script(call("exec", command=command), say("Two people."))
    async with box_bed.chat(box_bed.pipeline(config={"box-enabled": True})) as chat:
        turn = await chat.ask("How many people are in it?", files=[csv_file()])
        runs = box_bed.records.runs(chat.conversation_id)
    first, second = model.requests
    assert offered(first) >= SANDBOX
    run_id = runs[0].run_id
    assert f"/workspace/inbox/{run_id}-attachment-0/people.csv" in first.texts[-1][1]
    assert outbox_in(first) == f"/workspace/outbox/{run_id}"
    assert "2" in second.texts[-1][1]
    assert turn.answer.startswith("Two people.")
    assert turn.files == ("count.txt",)


async def test_H1_read_and_write_reach_the_model_and_failures_are_words(box_bed: Bed, model: ScriptedModel) -> None:
    model.script(
        call("write", path="/workspace/note.txt", content="heron"),
        call("read", path="/workspace/note.txt"),
        call("read", path="/workspace/none.txt"),
        say("Done."),
    )
    async with box_bed.chat(box_bed.pipeline(config={"box-enabled": True})) as chat:
        turn = await chat.ask("Write and read.")
    assert turn.answer == "Done."
    *_, third, fourth = model.requests
    assert "heron" in third.texts[-1][1]
    assert "none.txt" in fourth.texts[-1][1] and "Error [" in fourth.texts[-1][1]


async def test_H4_another_chat_sees_the_same_folder_as_the_readme_says(box_bed: Bed, model: ScriptedModel) -> None:
    pipeline = box_bed.pipeline(config={"box-enabled": True})
    model.script(call("write", path="/workspace/shared.txt", content="bittern"), say("Written."))
    async with box_bed.chat(pipeline) as one:
        await one.ask("Write it down.")
    model.script(call("read", path="/workspace/shared.txt"), say("It says bittern."))
    async with box_bed.chat(pipeline) as other:
        turn = await other.ask("What does it say?")
    assert one.conversation_id != other.conversation_id
    assert turn.answer == "It says bittern."
    assert "bittern" in model.requests[1].texts[-1][1]


async def test_H3_a_run_that_made_no_file_sends_none(box_bed: Bed, model: ScriptedModel) -> None:
    model.script(call("exec", command="echo nothing"), say("Nothing made."))
    async with box_bed.chat(box_bed.pipeline(config={"box-enabled": True})) as chat:
        turn = await chat.ask("Make nothing")
    assert (turn.answer, turn.files) == ("Nothing made.", ())


async def test_H1_switched_off_the_model_is_shown_none_of_it(box_bed: Bed, model: ScriptedModel) -> None:
    model.script(say("Hello."))
    async with box_bed.chat(box_bed.pipeline()) as chat:
        turn = await chat.ask("Hi", files=[csv_file()])
    assert turn.answer == "Hello."
    assert not SANDBOX & offered(model.requests[0])
    assert "people.csv" in model.requests[0].texts[-1][1]


async def test_H3_a_file_over_the_limit_is_named_and_the_other_is_sent(box_bed: Bed, model: ScriptedModel) -> None:
    async with box_bed.chat(box_bed.pipeline(config={"box-enabled": True})) as chat:
        model.script(say("Ready."))
        await chat.ask("Hi")
        model.script(call("exec", command=_make_in_newest_outbox()), say("Made."))
        turn = await chat.ask("Make two files", files=[csv_file()])
    assert turn.answer.startswith("Made.") and "big.bin" in turn.answer
    assert turn.files == ("small.txt",)


def _make_in_newest_outbox() -> str:
    run = "$(ls -t /workspace/inbox | head -1 | sed s/-attachment-0//)"
    return (
        f"d=/workspace/outbox/{run}; mkdir -p $d && echo small > $d/small.txt && "
        "head -c 11000000 /dev/zero > $d/big.bin && ls $d"
    )


@pytest.mark.parametrize("kind", ["private", "group"])
def test_J4_an_agent_gets_the_file_of_an_event_and_sends_what_it_made_to_where_it_came_from(
    box_bed: Bed, model: ScriptedModel, kind: str
) -> None:
    agents, platform = Agents(box_bed), GroupChat()
    conversation = "person_701" if kind == "private" else platform.conversation
    with Doors() as doors, platform:
        doors.open("people.csv")
        bot = agents.bot(agents.make(box_enabled=True), platform)
        try:
            model.script(call("exec", command=_copy_into_newest_outbox()), say("Here it is."))
            write = platform.private if kind == "private" else platform.says
            write("Copy it, please", 701, "Ann", [segment("file", file="people.csv", url=doors.url("people.csv"))])
            box_bed.wait_for_row(conversation, "Here it is.")
            platform.wait("file", lambda: any(action.files for action in platform.done))
        finally:
            agents.remove_bot(bot)
    first, _ = model.requests
    assert "people.csv, " in first.texts[-1][1] and "/workspace/inbox/" in first.texts[-1][1]
    text, file = platform.done
    assert (text.text, text.files) == ("Here it is.", [])
    assert file.files == [("copy.txt", b"door people.csv opened")]
    place, number = ("user_id", 701) if kind == "private" else ("group_id", platform.group)
    assert [int(action.params[place]) for action in (text, file)] == [number, number]
    (run,) = box_bed.records.runs(conversation)
    assert run.status == "completed"


def _copy_into_newest_outbox() -> str:
    return (
        "i=$(ls -t /workspace/inbox | head -1); d=/workspace/outbox/${i%-attachment-0}; "
        "mkdir -p $d && cp /workspace/inbox/$i/people.csv $d/copy.txt && ls $d"
    )
