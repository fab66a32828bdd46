"""B3, B6, D1-D4, D7, E1, E2: tools and knowledge through the real LangBot: of plugins, an MCP server, a skill."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import package
from runner.conversation.record import KEY
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.served import Doors
from tests.e2e.toolbox import call, calls, mcp_server, offered, plugin_installed, skill_installed, tool_texts

# Knowledge through the real LangBot: a knowledge engine of the tests, served by the Host (E1, E2).

ENGINE = Path(__file__).parent / "plugins" / "facts"
FACT = "The Bergen office opens at seven"


@pytest.fixture(scope="module")
def bases(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two knowledge bases of the engine."""
    who = package.identity(ENGINE)
    bed.langbot.api.install(package.build(ENGINE, tmp_path_factory.mktemp("facts")))
    engine = f"{who.author}/{who.name}"
    yield [bed.langbot.api.add_knowledge_base(name, engine) for name in ("Offices", "Offices again")]
    bed.langbot.api.uninstall(who.author, who.name)


@pytest.mark.usefixtures("ours")
async def test_E1_E2_the_model_reads_what_two_bases_hold_once_and_the_history_never_does(
    bed: Bed, model: ScriptedModel, bases: list[str]
) -> None:
    model.script(say("At seven (hours.txt)."), say("You are welcome."))
    pipeline = bed.pipeline(config={"knowledge-bases": bases})
    async with bed.chat(pipeline) as chat:
        turn = await chat.ask("When does the Bergen office open?")
        rows = bed.records.transcript(chat.conversation_id)
        await chat.ask("outage?")
    assert turn.answer == "At seven (hours.txt)."
    assert [row.text for row in rows] == ["When does the Bergen office open?", "At seven (hours.txt)."]
    first, second = model.requests
    role, said = first.texts[-1]
    assert role == "user" and said.count(FACT) == 1 and said.endswith("When does the Bergen office open?")
    assert "“hours.txt” in knowledge base “Offices”" in said
    assert "<|im_start|>" not in said and "<tool_call>" not in said
    assert second.holds(FACT) == 0


@pytest.mark.usefixtures("ours")
async def test_Q4_an_engine_that_is_away_costs_the_knowledge_and_not_the_answer(
    bed: Bed, model: ScriptedModel, bases: list[str]
) -> None:
    model.script(say("I do not know."))
    async with bed.chat(bed.pipeline(config={"knowledge-bases": bases})) as chat:
        turn = await chat.ask("Is there an outage?")
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "I do not know."
    assert [run.status for run in runs] == ["completed"]
    assert model.requests[0].holds(FACT) == 0


# Tools through the real LangBot: a plugin's, an MCP server's over HTTP, and a skill package; and what is kept of them
# (B3, B6, D1, D2, D4, D7).

MODES = ("parallel", "serial")
TICKET = "ticket-heron-1731"
GAUGE = "gauge-7719"
PASSWORD = "cormorant-8823"


@pytest.fixture(scope="module")
def tools(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("tools")
    with plugin_installed(bed, folder), mcp_server(bed, folder), skill_installed(bed):
        yield


def ended_calls(bed: Bed, conversation_id: str) -> list[str]:
    """The types of the tool events of the first run, in order."""
    (run, *_) = bed.records.runs(conversation_id)
    return [kind for kind in bed.records.event_types(run.run_id) if kind.startswith("tool.call.")]


@pytest.mark.usefixtures("ours", "tools")
@pytest.mark.parametrize("mode", MODES)
async def test_D2_B6_a_plugin_an_mcp_server_and_a_skill_in_one_run_and_the_next_run_knows_what_they_said(
    bed: Bed, model: ScriptedModel, mode: str
) -> None:
    model.script(
        calls(call("weigh", "call_0", bird="heron"), call("tide", "call_1", harbour="Bergen"), text="Let me look."),
        # The same id again, as providers without ids of their own give it.
        calls(call("activate", "call_0", skill_name="tide-tables")),
        calls(call("read_skill_resource", "call_0", skill_name="tide-tables", path="references/harbours.md")),
        say("The heron weighs 1731 g."),
        say("It wrote a ticket."),
    )
    async with bed.chat(bed.pipeline(config={"tool-execution-mode": mode})) as chat:
        first = await chat.ask("How heavy is the heron, and when is high tide?")
        rows = bed.records.transcript(chat.conversation_id)
        events = ended_calls(bed, chat.conversation_id)
        second = await chat.ask("What did the scale say?")
        runs = bed.records.runs(chat.conversation_id)
    asked, after_two, after_skill, after_file, later = model.requests

    assert offered(asked) >= {"weigh", "tide", "activate", "read_skill_resource", "list_skill_resources"}
    assert asked.holds("tide-tables") == 1, "the skill's index line"
    scale, gauge = tool_texts(after_two)
    assert TICKET in scale and GAUGE in gauge, "results in the order of the calls"
    assert PASSWORD in tool_texts(after_skill)[2]
    assert "reference-5521" in tool_texts(after_file)[3]
    ids = [made["id"] for message in after_file.messages for made in message.get("tool_calls") or ()]
    assert ids == [message["tool_call_id"] for message in after_file.messages if message["role"] == "tool"]
    assert len(set(ids)) == 4
    assert sorted(events) == ["tool.call.completed"] * 4 + ["tool.call.started"] * 4

    assert first.answer == "Let me look.\n\nThe heron weighs 1731 g."
    assert len(first.cards) == 1
    assert [row.role for row in rows] == ["user", "assistant"]
    assert KEY in rows[1].message["provider_specific_fields"]

    assert second.answer == "It wrote a ticket."
    assert [run.status for run in runs] == ["completed", "completed"]
    assert [later.holds(text) for text in (TICKET, GAUGE)] == [1, 1]
    assert later.holds("The heron weighs 1731 g.") == 1
    sent = json.dumps([request.body for request in model.requests])
    assert f'"{KEY}"' not in sent and "provider_specific_fields" not in sent


@pytest.mark.usefixtures("ours", "tools")
async def test_D2_parallel_calls_of_one_turn_run_at_the_same_time_and_are_told_in_order(
    bed: Bed, model: ScriptedModel, doors: Doors
) -> None:
    pair = call("knock", "a", url=doors.url("oak")), call("knock", "b", url=doors.url("elm"))
    model.script(calls(*pair), say("Both are open."))
    async with bed.chat(bed.pipeline(config={"tool-execution-mode": "parallel"})) as chat:
        start, sent_at = len(chat.frames), await chat.send("Knock at both.")
        await doors.knocked("oak")
        await doors.knocked("elm")
        # The second is through first.
        doors.open("elm")
        await doors.answered("elm")
        doors.open("oak")
        await chat.settled(start, 120)
        turn = chat.turn("Knock at both.", sent_at, start)
    assert turn.answer == "Both are open."
    oak, elm = tool_texts(model.requests[1])
    assert "door oak opened" in oak and "door elm opened" in elm


@pytest.mark.usefixtures("ours", "tools")
async def test_D2_serial_calls_of_one_turn_run_one_by_one(bed: Bed, model: ScriptedModel, doors: Doors) -> None:
    pair = call("knock", "a", url=doors.url("oak")), call("knock", "b", url=doors.url("elm"))
    model.script(calls(*pair), say("Both are open."))
    async with bed.chat(bed.pipeline(config={"tool-execution-mode": "serial"})) as chat:
        start = len(chat.frames)
        await chat.send("Knock at both.")
        await doors.knocked("oak")
        doors.open("elm")  # nobody is there
        doors.open("oak")
        await chat.settled(start, 120)
        events = ended_calls(bed, chat.conversation_id)
    assert doors.log == ["knock oak", "answer oak", "knock elm", "answer elm"]
    assert events == ["tool.call.started", "tool.call.completed"] * 2
    oak, elm = tool_texts(model.requests[1])
    assert "door oak opened" in oak and "door elm opened" in elm


@pytest.mark.usefixtures("ours", "tools")
@pytest.mark.parametrize("mode", MODES)
async def test_D2_D3_a_tool_that_fails_and_arguments_that_are_broken_cost_their_own_call_only(
    bed: Bed, model: ScriptedModel, mode: str
) -> None:
    model.script(
        calls(
            call("broken_gauge", "a"),
            call("weigh", "b", bird="albatross"),  # the plugin's own exception
            call("weigh", "c", bird=7),
            call("weigh", "d", bird="wren"),
        ),
        say("Only the wren could be weighed."),
    )
    async with bed.chat(bed.pipeline(config={"tool-execution-mode": mode})) as chat:
        turn = await chat.ask("Weigh everything.")
        runs = bed.records.runs(chat.conversation_id)
    assert turn.answer == "Only the wren could be weighed."
    assert [run.status for run in runs] == ["completed"]
    mcp, plugin, invalid, good = tool_texts(model.requests[1])
    assert "the gauge is under water" in mcp
    assert "albatross" in plugin
    assert "bird" in invalid and "string" in invalid
    assert "ticket-wren-9" in good
