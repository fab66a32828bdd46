"""Consent by words through the real LangBot: asked in the web page's chat, agreed to, run once (M2, M3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runner.consent.desk import WAITS
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.toolbox import call, calls, plugin_installed, tool_texts

pytestmark = pytest.mark.usefixtures("ours", "tools")

TICKET = "ticket-heron-1731"
ASKS = {"ask-before-tools": "listed", "ask-before-these-tools": ["weigh"], "notice-language": "en_US"}


@pytest.fixture(scope="module")
def tools(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with plugin_installed(bed, tmp_path_factory.mktemp("tools")):
        yield


async def test_M3_a_call_waits_for_a_yes_in_the_web_chat_and_runs_once(bed: Bed, model: ScriptedModel) -> None:
    model.script(
        calls(call("weigh", "call_0", bird="heron"), text="I will weigh it."),
        say("It weighs 1731 g."),
        say("You are welcome."),
    )
    async with bed.chat(bed.pipeline(config=ASKS)) as chat:
        asked = await chat.ask("How heavy is the heron?")
        agreed = await chat.ask("Yes, please!")
        later = await chat.ask("yes")
        runs = bed.records.runs(chat.conversation_id)
    assert asked.answer.startswith("I will weigh it.\n\nBefore I do this, I need your consent:")
    assert "bird: heron" in asked.answer
    assert agreed.answer == "It weighs 1731 g."
    assert later.answer == "You are welcome."
    first, second, third = model.requests
    assert not tool_texts(first)
    assert [TICKET in text for text in tool_texts(second)] == [False, True]
    assert WAITS in tool_texts(second)[0]
    assert third.holds(TICKET) == 1
    assert [run.status for run in runs] == ["completed"] * 3


async def test_M3_anything_else_than_a_yes_runs_nothing(bed: Bed, model: ScriptedModel) -> None:
    model.script(calls(call("weigh", "call_0", bird="heron")), say("Then not."), say("What do you mean?"))
    async with bed.chat(bed.pipeline(config=ASKS)) as chat:
        await chat.ask("How heavy is the heron?")
        refused = await chat.ask("No, leave it.")
        await chat.ask("yes")
    assert refused.answer == "Then not."
    assert all(request.holds(TICKET) == 0 for request in model.requests)
