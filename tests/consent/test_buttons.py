"""Consent by buttons, where the platform has them (M2, M3)."""

from __future__ import annotations

from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.interaction import InteractionRequest

from runner.conversation.history import AGREED_BY_BUTTON
from tests.host import CardRefused, InteractionCard, Reply, TestHost, ToolCall
from tests.runs.agents import agent
from tests.runs.scenes import assert_sound

from .chats import ASKS, PAY, chat, open_keys, pay, ran

DONE = Reply("It is paid.")
GONE = "That request no longer counts"


def with_buttons(*replies: Reply | str, **given: Any) -> TestHost:
    return chat(replies=[Reply("I will pay. ", tool_calls=[PAY]), *(replies or [DONE])], interactions=True, **given)


async def test_M2_the_card_comes_after_the_answer_and_names_tool_and_arguments_by_itself() -> None:
    host = with_buttons()
    run = await host.say("Pay Bob")
    await assert_sound(host, run)
    assert run.types[-4:] == ["message.completed", "state.updated", "action.requested", "run.completed"]
    (card,) = host.cards
    asked = InteractionRequest.model_validate(card.request)
    assert "pay" in (asked.description or "")
    assert "to: Bob" in (asked.description or "")
    assert [action.id for action in asked.actions] == ["agree", "refuse"]
    assert "to: Bob" in asked.fallback_text


async def test_M2_a_card_is_short_enough_for_every_platform() -> None:
    long = Reply("", tool_calls=[ToolCall("pay", {"to": "x" * 9_000}, id=f"c{at}") for at in range(9)])
    host = chat(replies=[long], interactions=True)
    await host.say("Pay Bob")
    (card,) = host.cards
    assert len(card.request["title"]) + len(card.request["description"]) < 1_800


async def test_M2_without_buttons_no_card_is_asked_for() -> None:
    host = chat()
    run = await host.say("Pay Bob")
    assert "action.requested" not in run.types


async def test_M3_a_press_runs_the_calls_once_and_later_runs_know_of_it() -> None:
    host = with_buttons(DONE, "Yes.")
    await host.say("Pay Bob")
    run = await host.press(host.cards[0])
    await assert_sound(host, run)
    assert run.final_text == "It is paid."
    assert ran(host) == [{"to": "Bob", "amount": 5}]
    with pytest.raises(CardRefused):
        await host.press(host.cards[0])
    last = await host.say("Is it paid?")
    assert AGREED_BY_BUTTON in last.requests[0].text
    assert len(ran(host)) == 1


async def test_M3_the_button_serves_the_asker_only() -> None:
    host = with_buttons(config={"who-may-agree": "anyone"})
    await host.say("Pay Bob", sender="ann", conversation="group_1")
    with pytest.raises(CardRefused):
        await host.press(host.cards[0], sender="eve")
    await host.press(host.cards[0], sender="ann")
    assert len(ran(host)) == 1


async def test_M3_the_other_button_refuses() -> None:
    host = with_buttons("Then not.", "Hm?")
    await host.say("Pay Bob")
    run = await host.press(host.cards[0], "refuse")
    assert run.final_text == "Then not."
    await host.say("yes")
    assert (ran(host), open_keys(host)) == ([], [])


async def test_M2_a_card_that_fails_changes_nothing_the_calls_go_on_waiting() -> None:
    host = with_buttons()

    def breaks(_card: InteractionCard) -> None:
        raise RuntimeError("Forbidden: bot was blocked by the user")

    host.world.cards.deliver = breaks
    run = await host.say("Pay Bob")
    assert run.status == "failed"
    assert "need your consent" in (run.final_text or "")
    await host.say("yes")
    assert len(ran(host)) == 1


@pytest.mark.parametrize("first", ["yes", "no"])
async def test_M3_a_press_after_words_runs_nothing(first: str) -> None:
    host = with_buttons(DONE, DONE)
    await host.say("Pay Bob")
    await host.say(first)
    before = len(ran(host))
    run = await host.press(host.cards[0])
    await assert_sound(host, run)
    assert run.final_text is not None
    assert GONE in run.final_text
    assert run.requests == []
    assert len(ran(host)) == before == (1 if first == "yes" else 0)


async def test_M5_a_card_of_a_replaced_request_runs_nothing() -> None:
    other = Reply("", tool_calls=[ToolCall("pay", {"to": "Eve", "amount": 9})])
    host = with_buttons(other, DONE)
    await host.say("Pay Bob")
    await host.say("Pay Eve instead")
    run = await host.press(host.cards[0])
    assert GONE in (run.final_text or "")
    await host.press(host.cards[1])
    assert ran(host) == [{"to": "Eve", "amount": 9}]


async def test_M3_pressed_and_said_at_once_the_calls_run_once() -> None:
    host = with_buttons(DONE, DONE)
    await host.say("Pay Bob")
    runs = [host.start_press(host.cards[0]), host.start("yes")]
    for run in runs:
        await run.wait()
    assert len(ran(host)) == 1


async def test_M5_a_submission_for_no_request_of_ours_is_a_message() -> None:
    host = with_buttons("Hm?")
    await host.say("Pay Bob")
    forged = {"interaction_id": "runner.consent.ffff", "action_id": "agree", "values": {}, "submitted_at": 1}
    run = await host.submit(forged, sender="u1", conversation="person_1").wait()
    assert GONE in (run.final_text or "")
    assert ran(host) == []


# Outside pipelines


async def test_M4_an_agents_message_is_asked_about_by_words_and_buttons() -> None:
    replies = [Reply("", tool_calls=[PAY]), DONE]
    host = agent(config=ASKS, tools=[pay()], replies=replies, interactions=True)
    await host.say("Pay Bob")
    assert "need your consent" in host.world.platform.replies[-1]
    run = await host.press(host.cards[0])
    assert len(ran(host)) == 1
    assert "It is paid." in str([call.data for call in run.calls.of("reply_stream")])


async def test_M4_an_agents_event_asks_by_button_alone() -> None:
    replies = [Reply("", tool_calls=[PAY]), "Hm?", DONE]
    host = agent(config=ASKS, tools=[pay()], replies=replies, interactions=True)
    await host.event("group.member_joined", conversation="group_1")
    await host.say("yes", conversation="group_1")
    assert ran(host) == []
    await host.press(host.cards[0])
    assert len(ran(host)) == 1


async def test_M4_an_event_without_buttons_is_refused_at_once() -> None:
    host = agent(config=ASKS, tools=[pay()], replies=[Reply("", tool_calls=[PAY]), "Could not."])
    run = await host.event("group.member_joined", conversation="group_1")
    assert "nobody who could be asked" in run.requests[-1].text
    assert (ran(host), open_keys(host, "group_1")) == ([], [])


async def test_M4_without_a_conversation_it_is_refused() -> None:
    host = chat(replies=[Reply("", tool_calls=[PAY]), "Could not."], interactions=True)
    run = await host.say("Pay Bob", conversation=None)
    assert "nobody who could be asked" in run.requests[-1].text
    assert ran(host) == []


async def test_M4_tools_of_the_event_never_wait_and_name_their_twin() -> None:
    mute = Reply("", tool_calls=[ToolCall("event_mute_member", {"duration": 60})])
    host = agent(config=ASKS, replies=[mute, "Not done."], interactions=True)
    run = await host.say("Mute him", conversation="group_1")
    assert "platform_mute_member" in run.requests[-1].text
    assert ran(host, "event_mute_member") == []
    assert host.cards == []
