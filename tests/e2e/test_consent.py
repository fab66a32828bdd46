"""Consent through the real LangBot: by words in the web page's chat, by button on Telegram, run once (M2, M3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runner.consent.desk import WAITS
from tests.e2e.bed import Bed
from tests.e2e.bots import GroupChat, group_bot
from tests.e2e.onebot import BOT_ACCOUNT, segment
from tests.e2e.scripted_model import ScriptedModel, say
from tests.e2e.telegram import TOKEN, Telegram
from tests.e2e.toolbox import call, calls, plugin_installed, request, tool_texts

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


@contextmanager
def bot_on_telegram(bed: Bed, telegram: Telegram, pipeline: str, *, streams: bool) -> Iterator[None]:
    """A bot on Telegram whose messages go to a pipeline, by LangBot's own adapter."""
    body = {
        "name": "telegram bot",
        "description": "",
        "adapter": "telegram-omni",
        "adapter_config": {"token": TOKEN, "markdown_card": False, "enable-stream-reply": streams},
        "enable": True,
        "event_bindings": [{"event_pattern": "message.received", "target_type": "pipeline", "target_uuid": pipeline}],
    }
    telegram.done.clear()
    bot = str(request(bed, "POST", "/platform/bots", json=body)["uuid"])
    request(bed, "PUT", f"/platform/bots/{bot}", json={"enable": True})
    try:
        yield
    finally:
        request(bed, "DELETE", f"/platform/bots/{bot}")


WEIGHS = calls(call("weigh", "call_0", bird="heron"), text="I will weigh it.")


def test_M3_a_button_on_telegram_agrees_and_the_call_runs_once(
    bed: Bed, model: ScriptedModel, telegram: Telegram
) -> None:
    model.script(WEIGHS, say("It weighs 1731 g."), say("You are welcome."))
    chat = telegram.chat()
    with bot_on_telegram(bed, telegram, bed.pipeline(config=ASKS), streams=True):
        chat.says("How heavy is the heron?")
        chat.wait("card", lambda: bool(chat.cards))
        (card,) = chat.cards
        chat.presses(card)
        chat.wait_for("It weighs 1731 g.")
        chat.presses(card)
        chat.says("Thanks!")
        chat.wait_for("You are welcome.")
    assert "weigh" in card.text
    assert "bird: heron" in card.text
    assert [button["callback_data"][:4] for button in card.buttons] == ["lbi:", "lbi:"]
    assert len(chat.cards) == 1
    assert any("Before I do this, I need your consent:" in done.text for done in chat.seen)
    first, second, third = model.requests
    assert not tool_texts(first)
    assert TICKET in tool_texts(second)[-1]
    assert third.holds(TICKET) == 1


def test_M2_where_telegram_does_not_stream_the_card_comes_first_and_a_press_runs_the_call_once(
    bed: Bed, model: ScriptedModel, telegram: Telegram
) -> None:
    """What is said after a press LangBot keeps, and cannot send here: its adapter looks for a message in the press."""
    model.script(WEIGHS, say("It weighs 1731 g."), say("You are welcome."))
    chat = telegram.chat()
    with bot_on_telegram(bed, telegram, bed.pipeline(config=ASKS), streams=False):
        chat.says("How heavy is the heron?")
        chat.wait_for("Reply “yes” to agree")
        chat.presses(chat.cards[0])
        bed.wait_for_row(chat.conversation, "It weighs 1731 g.")
        chat.says("yes")
        chat.wait_for("You are welcome.")
    assert chat.seen[0] == chat.cards[0]
    assert [request.holds(TICKET) for request in model.requests] == [0, 1, 1]


def test_M3_on_telegram_only_the_asker_can_press_and_no_is_no(
    bed: Bed, model: ScriptedModel, telegram: Telegram
) -> None:
    model.script(WEIGHS, say("Then not."))
    chat = telegram.chat()
    with bot_on_telegram(bed, telegram, bed.pipeline(config=ASKS), streams=True):
        chat.says("How heavy is the heron?")
        chat.wait("card", lambda: bool(chat.cards))
        chat.presses(chat.cards[0], who=666, name="Eve")
        chat.presses(chat.cards[0], button=1)
        chat.wait_for("Then not.")
    assert all(request.holds(TICKET) == 0 for request in model.requests)
    assert len(model.requests) == 2


def test_M3_in_a_group_a_bare_yes_does_not_reach_the_bot_and_one_with_its_name_runs_the_call(
    bed: Bed, model: ScriptedModel
) -> None:
    model.script(WEIGHS, say("It weighs 1731 g."))
    named = [segment("at", qq=str(BOT_ACCOUNT))]
    with GroupChat() as group, group_bot(bed, bed.pipeline(config=ASKS), group):
        group.says("How heavy is the heron?", 501, "Ann", named)
        group.wait("the request", lambda: any("can agree by replying" in text for text in group.said))
        group.says("yes", 501, "Ann")
        group.says("yes", 501, "Ann", named)
        group.wait("the answer", lambda: any("1731 g" in text for text in group.said))
    assert len(model.requests) == 2
    assert model.requests[1].holds(TICKET) == 1
