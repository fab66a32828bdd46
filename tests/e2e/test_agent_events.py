"""LangBot Agents with our runner in the real LangBot: its debug stream, and events of a platform (J1–J5)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from demo.processes import wait_until
from tests.e2e.bed import Bed
from tests.e2e.bots import Agents, GroupChat
from tests.e2e.onebot import (
    ADDRESS,
    QUOTED,
    OneBot,
    last_said,
    pictures,
    posted_file,
    posted_picture,
    posted_quote,
    posted_voice,
)
from tests.e2e.scripted_model import Call, Reply, ScriptedModel, say
from tests.e2e.served import Callbacks

pytestmark = pytest.mark.usefixtures("ours")

ANSWER = "The kettle is in the left cupboard, behind the tea."


@pytest.fixture(scope="module")
def agents(bed: Bed) -> Agents:
    return Agents(bed)


@pytest.fixture(scope="module")
def platform() -> Iterator[OneBot]:
    with OneBot() as endpoint:
        yield endpoint


def reply_call(text: str) -> Reply:
    return Reply(calls=(Call("event_reply", f'{{"text": "{text}"}}'),))


# The debug page


def test_J2_auto_on_the_debug_page_shows_the_text_as_it_grows_and_one_message(
    bed: Bed, model: ScriptedModel, agents: Agents
) -> None:
    model.script(say(ANSWER, 6, chunk_delay=0.12))
    run = agents.debug(agents.make(), "Where is the kettle?", conversation="debug-auto")
    assert run.ending["kind"] == "completed"
    assert run.messages == [ANSWER]
    assert len(run.deltas) >= 2
    assert run.deltas[-1] == ANSWER
    assert run.types[-2:] == ["message.completed", "run.completed"]
    assert run.of("tool.call.completed") == []
    offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "event_reply" not in offered
    assert "event_get_actor" in offered
    rows = bed.records.transcript("debug-auto")
    assert [(row.role, row.text) for row in rows] == [("user", "Where is the kettle?"), ("assistant", ANSWER)]


def test_J2_model_on_the_debug_page_replies_by_its_own_call(model: ScriptedModel, agents: Agents) -> None:
    model.script(reply_call(ANSWER), say("Answered."))
    run = agents.debug(agents.make(agent_reply="model"), "Where is the kettle?")
    assert (run.ending["kind"], run.messages) == ("completed", ["Answered."])
    (call,) = run.of("tool.call.completed")
    assert (call["tool_name"], call["error"], call["result"]["mock"]) == ("event_reply", None, True)


def test_J2_a_reply_that_the_debug_page_lets_fail_is_tried_by_tool_once_and_the_run_completes(
    model: ScriptedModel, agents: Agents
) -> None:
    model.script(say(ANSWER))
    failing = {"errors": {"event_reply": "the test lets it fail"}}
    run = agents.debug(agents.make(), "Where is the kettle?", mock=failing)
    assert (run.ending["kind"], run.messages) == ("completed", [ANSWER])
    (call,) = run.of("tool.call.completed")
    assert call["tool_name"] == "event_reply"
    assert "the test lets it fail" in call["error"]
    assert any("could not be sent" in data["text"] for data in run.of("processor.log"))


def test_J1_a_new_member_on_the_debug_page_is_told_in_words(model: ScriptedModel, agents: Agents) -> None:
    model.script(reply_call("Welcome, Mia!"), say("Greeted Mia."))
    data = {"group_id": "900", "member_id": "77", "member_name": "Mia"}
    run = agents.debug(agents.make(), "", event_type="group.member_joined", data=data)
    assert (run.ending["kind"], run.messages) == ("completed", ["Greeted Mia."])
    (call,) = run.of("tool.call.completed")
    assert call["result"]["mock"] is True
    (told,) = [text for role, text in model.requests[0].texts if role == "user"]
    assert "a new member joined a group" in told
    assert "Mia" in told
    assert any(data["text"] == "Greeted Mia." for data in run.of("processor.log"))


def test_J5_two_messages_of_one_chat_at_the_same_time_are_answered_once_each(
    bed: Bed, model: ScriptedModel, agents: Agents
) -> None:
    agent = agents.make()
    model.script(say("First.", 2, chunk_delay=0.3), say("Second.", 2, chunk_delay=0.3))
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda text: agents.debug(agent, text, conversation="debug-twice"), ("one", "two")))
    assert sorted(text for run in runs for text in run.messages) == ["First.", "Second."]
    assert [run.ending["kind"] for run in runs] == ["completed", "completed"]
    assert sorted(row.text for row in bed.records.transcript("debug-twice")) == ["First.", "Second.", "one", "two"]


# A platform


def test_J2_auto_answers_a_message_once(bed: Bed, model: ScriptedModel, agents: Agents, platform: OneBot) -> None:
    platform.forget()
    bot = agents.bot(agents.make(), platform)
    try:
        model.script(say(ANSWER, 6, chunk_delay=0.1))
        platform.private("Where is the kettle?", user=501)
        platform.wait("answer", lambda: bool(platform.said))
        bed.wait_for_row("person_501", ANSWER)
    finally:
        agents.remove_bot(bot)
    assert platform.said == [ANSWER]
    assert [row.text for row in bed.records.transcript("person_501")] == ["Where is the kettle?", ANSWER]
    (run,) = bed.records.runs("person_501")
    assert run.status == "completed"
    assert "message.delta" not in bed.records.event_types(run.run_id)


def test_J2_auto_streams_one_reply_to_a_platform_that_shows_it_as_it_grows(
    bed: Bed, model: ScriptedModel, agents: Agents
) -> None:
    with Callbacks() as callbacks:
        bot = agents.web_bot(agents.make(), callbacks)
        try:
            model.script(say(ANSWER, 6, chunk_delay=0.15))
            agents.write(bot, "Where is the kettle?", session="web-1")
            bed.wait_for_row("person_web-1", ANSWER)
            wait_until("the end of the reply", lambda: callbacks.finished, seconds=30)
        finally:
            agents.remove_bot(bot)
    texts = [one.text for one in callbacks.shown]
    assert len(texts) >= 3
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert [one.is_final for one in callbacks.shown] == [False] * (len(texts) - 1) + [True]
    assert texts[-1] == ANSWER
    assert all(one.stream for one in callbacks.shown)


def test_J2_model_answers_a_message_once(bed: Bed, model: ScriptedModel, agents: Agents, platform: OneBot) -> None:
    platform.forget()
    bot = agents.bot(agents.make(agent_reply="model"), platform)
    try:
        model.script(reply_call(ANSWER), say("Answered."))
        platform.private("Where is the kettle?", user=502)
        bed.wait_for_row("person_502", "Answered.")
    finally:
        agents.remove_bot(bot)
    assert platform.said == [ANSWER]


def test_J1_a_new_member_is_greeted_by_tool(bed: Bed, model: ScriptedModel, agents: Agents, platform: OneBot) -> None:
    platform.forget()
    bot = agents.bot(agents.make(), platform)
    try:
        model.script(reply_call("Welcome!"), say("Greeted the new member."))
        platform.joined(user=777)
        bed.wait_for_row("group_900", "Greeted the new member.")
    finally:
        agents.remove_bot(bot)
    assert platform.said == ["Welcome!"]
    told = model.requests[0].texts[-1][1]
    for words in ("a new member joined a group", "777", "900"):
        assert words in told


def test_J3_a_friend_request_is_approved_once(model: ScriptedModel, agents: Agents, platform: OneBot) -> None:
    platform.forget()
    bot = agents.bot(agents.make(), platform)
    try:
        model.script(Reply(calls=(Call("event_respond_friend_request", '{"approve": true}'),)), say("Approved."))
        platform.friend_request(user=888, comment="It is me, Bob", flag="flag-1")
        platform.wait("second request of the model", lambda: len(model.requests) == 2)
    finally:
        agents.remove_bot(bot)
    (action,) = platform.done
    assert action.name == "set_friend_add_request"
    assert (action.params["flag"], action.params["approve"]) == ("flag-1", True)
    assert "It is me, Bob" in model.requests[0].texts[-1][1]


@pytest.mark.parametrize("kind", ["private", "group"])
def test_B4_J1_a_message_with_a_quote_and_files_is_read_in_words_and_its_picture_seen(
    bed: Bed, model: ScriptedModel, agents: Agents, kind: str
) -> None:
    club = GroupChat()
    conversation = "person_541" if kind == "private" else club.conversation
    model.script(say(f"Seen, {kind}."), say(f"Yes, {kind}."))
    with club:
        bot = agents.bot(agents.make(), club)
        try:
            write = club.private if kind == "private" else club.says
            write(
                "Is that so?", 541, "Ann", [posted_quote(club), posted_picture(), posted_voice(), posted_file("a.pdf")]
            )
            bed.wait_for_row(conversation, f"Seen, {kind}.")
            write("Sure?", 541, "Ann")
            club.wait("second answer", lambda: len(club.said) == 2)
        finally:
            agents.remove_bot(bot)
    assert club.said == [f"Seen, {kind}.", f"Yes, {kind}."]
    first, later = model.requests
    said = last_said(first)
    assert pictures(first) == [f"{ADDRESS}/photo.png"]
    assert f"> {QUOTED}\n> [image]\n> [voice message]\n> [file: agenda.pdf]\n" in said
    assert [said.count(words) for words in ("Is that so?", "[file: a.pdf", "[voice: ", "MessageChain")] == [1, 1, 1, 0]
    before = next(text for role, text in reversed(later.texts[:-1]) if role == "user")
    assert f"> {QUOTED}\n" in before and "MessageChain" not in before
    assert pictures(later) == []


def test_J2_a_platform_that_refuses_to_send_costs_the_reply_and_not_the_run(
    bed: Bed, model: ScriptedModel, agents: Agents, platform: OneBot
) -> None:
    platform.forget()
    platform.refusing |= {"send_msg", "send_private_msg"}
    bot = agents.bot(agents.make(), platform)
    try:
        model.script(say(ANSWER))
        platform.private("Where is the kettle?", user=503)
        bed.wait_for_row("person_503", ANSWER)
    finally:
        agents.remove_bot(bot)
    (run,) = bed.records.runs("person_503")
    assert run.status == "completed"
    assert len(platform.said) <= 2, "the stream, and event_reply once in its place"
