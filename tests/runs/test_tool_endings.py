"""D5, D6, K9: how tools end whole runs, and that loops end in every profile with an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.loop.loop import CONCLUDE_IDLE, CONCLUDE_REPEATED, REPEATED
from tests.host import Model, ModelRequest, Reason, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import LOOK, LOOKING, assert_sound, broken_rules, calls, host_with, results

# How tools end whole runs: by their own wish, or since no more rounds are allowed (D5, D6).

ONE_ROUND = {"max-tool-iterations": 1}
ROUNDS_NOTE = say(Notice.TOOL_ROUNDS_NOTE, Locale.EN_US, rounds=1)
NO_ANSWER_NOTE = say(Notice.NO_ANSWER_NOTE, Locale.EN_US)


def heedless(answer: str) -> Callable[[ModelRequest], Reply]:
    """A model of a server that does not mind `tool_choice`: it calls as long as there is a tool."""
    return lambda request: LOOK if request.funcs else Reply(answer)


async def test_D5_a_batch_that_all_terminates_ends_the_run_without_another_model_call() -> None:
    tool = Tool("done", result={"terminate": True, "text": "sent"})
    host = host_with(replies=[calls("done", "done"), "never"], tools=[tool])
    run = await host.say("go")
    assert len(run.requests) == 1
    assert run.status == "completed"
    assert run.completed == []
    assert run.cards == []
    await assert_sound(host, run)


async def test_D5_text_said_before_a_terminating_batch_is_the_answer() -> None:
    reply = Reply("I send it.", tool_calls=[ToolCall("done")])
    host = host_with(replies=[reply, "never"], tools=[Tool("done", result={"terminate": True})])
    run = await host.say("go")
    assert run.final_text == "I send it."
    await assert_sound(host, run)


@pytest.mark.parametrize(
    "other", [{"ok": 1}, "text", {"terminate": False}, {"terminate": "yes"}, {"in": {"terminate": True}}]
)
async def test_D5_a_mixed_batch_goes_on_and_the_model_never_sees_the_hint(other: Any) -> None:
    tools = [Tool("done", result={"terminate": True, "text": "sent"}), Tool("look", result=other)]
    host = host_with(replies=[calls("done", "look"), "Done."], tools=tools)
    run = await host.say("go")
    assert len(run.requests) == 2
    assert "terminate" not in results(run)[0]
    assert "sent" in results(run)[0]
    await assert_sound(host, run)


async def test_D5_an_error_never_terminates() -> None:
    tool = Tool("done", result={"terminate": True, "ok": False, "error": "no"}, type="builtin")
    host = host_with(replies=[calls("done"), "Done."], tools=[tool])
    run = await host.say("go")
    assert run.final_text == "Done."
    host = host_with(replies=[calls("done", "nothing"), "Done."], tools=[Tool("done", result={"terminate": True})])
    run = await host.say("go")
    assert run.final_text == "Done."


async def test_D6_at_the_limit_the_model_concludes_without_tools_and_the_user_gets_an_answer() -> None:
    tool = Tool("look")
    host = host_with(replies=[calls("look")] * 4, tools=[tool], config={"max-tool-iterations": 3})
    host.model.say("What I know.")
    run = await host.say("go")
    assert len(tool.calls) == 3
    last = run.requests[-1]
    assert last.extra_args.get("tool_choice") == "none"
    assert last.tool_names == ["look"]
    assert "Error [limit]" in results(run)[-1]
    assert run.final_text is not None
    assert run.final_text.startswith("What I know.")
    assert len(run.of("tool.call.started")) == len(run.of("tool.call.completed")) == 4
    await assert_sound(host, run)


async def test_D6_a_refused_tool_choice_is_tried_once_without_tools() -> None:
    replies = [calls("look"), calls("look"), Reply(error=Reason.BAD_REQUEST), "What I know."]
    host = host_with(replies=replies, tools=[Tool("look")], config={"max-tool-iterations": 1})
    run = await host.say("go")
    assert [request.extra_args.get("tool_choice") for request in run.requests] == [None, None, "none", None]
    assert run.requests[-1].funcs == []
    assert run.final_text is not None
    assert run.final_text.startswith("What I know.")
    assert [one for one in broken_rules(run) if one.rule != "tools_missing"] == []


async def test_D6_a_call_in_the_conclusion_is_not_run() -> None:
    tool = Tool("look")
    replies = [calls("look"), calls("look"), Reply("What I know.", tool_calls=[ToolCall("look")])]
    host = host_with(replies=replies, tools=[tool], config={"max-tool-iterations": 1})
    run = await host.say("go")
    assert len(tool.calls) == 1
    assert run.final_text is not None
    assert run.final_text.startswith("What I know.")
    await assert_sound(host, run)


async def test_D6_a_conclusion_that_is_only_a_call_still_leaves_words_for_the_person() -> None:
    host = host_with(replies=[calls("look")] * 3, tools=[Tool("look")], config={"max-tool-iterations": 1})
    run = await host.say("go")
    assert run.status == "completed"
    assert run.final_text
    assert run.final_text.strip()
    await assert_sound(host, run)


async def test_D6_where_a_model_takes_no_tools_any_more_its_earlier_calls_are_words() -> None:
    replies = [
        Reply(tool_calls=[ToolCall("look")]),
        Reply(tool_calls=[ToolCall("look")]),
        Reply(error=Reason.BAD_REQUEST),
        "Enough.",
    ]
    host = host_with(replies=replies, tools=[Tool("look", result="found")], config={"max-tool-iterations": 1})
    run = await host.say("go")
    assert run.requests[-1].tool_names == []
    assert [message for message in run.requests[-1].messages if message.get("tool_calls")] == []
    assert "look was called" in run.requests[-1].text
    assert run.final_text == "Enough."
    await assert_sound(host, run)


async def test_K10_a_conclusion_that_only_calls_is_asked_for_once_more_without_tools() -> None:
    tool = Tool("look", result="found")
    models = [Model("m1", default=heedless("The answer is 42.")), Model("m2")]
    host = host_with(models=models, tools=[tool], config=ONE_ROUND)
    run = await host.say("go")
    assert run.final_text == "The answer is 42."
    assert [(request.model, bool(request.funcs)) for request in run.requests] == [("m1", True)] * 3 + [("m1", False)]
    assert run.requests[-1].extra_args.get("tool_choice") is None
    assert "look was called" in run.requests[-1].text
    assert len(tool.calls) == 1
    await assert_sound(host, run)


@pytest.mark.parametrize(
    "nothing", [LOOK, Reply(), Reply("<think>hm</think>"), Reply(" \n", tool_calls=LOOK.tool_calls)]
)
async def test_K10_then_the_next_model_concludes_from_what_was_done(nothing: Reply) -> None:
    tool = Tool("look", result="found")
    models = [
        Model("m1", replies=[LOOK, LOOK, nothing, nothing], default="never"),
        Model("m2", replies=["From found."]),
    ]
    host = host_with(models=models, tools=[tool], config=ONE_ROUND)
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1"] * 4 + ["m2"]
    assert run.requests[-1].funcs == []
    assert run.final_text is not None
    assert run.final_text.endswith("From found.")
    assert "found" in run.requests[-1].text
    assert len(tool.calls) == 1
    await assert_sound(host, run)


@pytest.mark.parametrize("before", [LOOK, LOOKING])
async def test_K10_where_nobody_concludes_one_note_names_the_reason(before: Reply) -> None:
    models = [Model("m1", replies=[before], default=LOOK), Model("m2", default=Reply())]
    host = host_with(models=models, tools=[Tool("look")], config=ONE_ROUND)
    run = await host.say("go")
    assert run.final_text == (f"Looking.\n\n{ROUNDS_NOTE}" if before.text else ROUNDS_NOTE)
    assert [request.model for request in run.requests] == ["m1"] * 4 + ["m2"]
    await assert_sound(host, run)


async def test_K10_a_conclusion_with_words_is_asked_for_once() -> None:
    replies = [LOOK, LOOK, Reply("What I know.", tool_calls=LOOK.tool_calls)]
    run = await host_with(replies=replies, tools=[Tool("look")], config=ONE_ROUND).say("go")
    assert (run.final_text, len(run.requests)) == ("What I know.", 3)


async def test_K10_where_the_last_reply_said_nothing_behind_earlier_words_a_note_says_so() -> None:
    host = host_with(replies=[LOOKING, Reply()], tools=[Tool("look")])
    run = await host.say("go")
    assert run.final_text == f"Looking.\n\n{NO_ANSWER_NOTE}"
    await assert_sound(host, run)


async def test_K10_a_follow_up_after_a_bare_conclusion_is_answered_without_tools_too() -> None:
    said: list[bool] = []

    def reply(request: ModelRequest) -> Reply:
        if request.funcs:
            return LOOK
        if not said:
            said.append(host.steer("and?"))
        return Reply("What I know.")

    host = host_with(models=[Model("m1", default=reply)], tools=[Tool("look")], config=ONE_ROUND)
    run = await host.say("go")
    assert run.final_text == "What I know.\n\nWhat I know."
    assert [bool(request.funcs) for request in run.requests] == [True, True, True, False, False]
    await assert_sound(host, run)


# K9: loops end in every profile, with an answer, and a sentence said with each call is shown once.

ToolKind = Literal["skill", "plugin", "mcp", "platform"]
TEXT = {"type": "object", "properties": {"to": {"type": "string"}}}


def tool(name: str) -> Tool:
    return Tool(name, result="done", parameters=TEXT)


def stubborn(*calls: ToolCall, text: str = "", answer: str = "That is all I know.") -> Callable[[ModelRequest], Reply]:
    """A model that makes these calls in turn, one a reply, until it may not call any more."""

    def reply(request: ModelRequest) -> Reply:
        if request.extra_args.get("tool_choice") == "none":
            return Reply(answer)
        rounds = sum(1 for message in request.messages if message.get("tool_calls"))
        return Reply(text, tool_calls=[calls[rounds % len(calls)]])

    return reply


async def played(reply: Callable[[ModelRequest], Reply], *tools: Tool, **config: object) -> tuple[TestHost, RunRecord]:
    settings = {name.replace("_", "-"): value for name, value in config.items()}
    host = host_with(models=[Model("m1", default=reply)], tools=list(tools), config=settings)
    run = await host.say("Go on.")
    await assert_sound(host, run)
    return host, run


@pytest.mark.parametrize("profile", ["standard", "auto"])
async def test_K9_a_call_that_acts_is_told_at_the_third_and_concludes_the_run_at_the_fifth(profile: str) -> None:
    send = tool("send_welcome")
    _, run = await played(stubborn(ToolCall("send_welcome", {"to": "ann"})), send, model_profile=profile)
    assert len(send.calls) == 5
    assert [REPEATED in request.text for request in run.requests] == [False] * 3 + [True] * 3
    assert run.requests[-1].last_user.endswith(CONCLUDE_REPEATED)
    assert run.requests[-1].extra_args["tool_choice"] == "none"
    assert run.final_text == "That is all I know."
    assert run.status == "completed"


async def test_K9_two_calls_in_turn_are_a_circle_too() -> None:
    one, two = tool("send_one"), tool("send_two")
    _, run = await played(stubborn(ToolCall("send_one"), ToolCall("send_two")), one, two)
    assert (len(one.calls), len(two.calls)) == (5, 5)
    assert len(run.requests) == 11 and run.final_text == "That is all I know."


READERS: list[tuple[str, ToolKind, int]] = [
    ("event_get_actor", "platform", 20),
    ("platform_get_group", "platform", 20),
    ("langbot_mcp_read_resource", "mcp", 20),
    # Only names: nobody knows what such a tool does.
    ("get_everything", "plugin", 5),
    ("read", "mcp", 5),
    ("event_get_actor", "plugin", 5),
]


@pytest.mark.parametrize(("name", "kind", "times"), READERS)
async def test_K9_only_the_hosts_own_reading_tools_may_poll_to_twenty(name: str, kind: ToolKind, times: int) -> None:
    reader = Tool(name, type=kind, result={"name": "Ann"})
    _, run = await played(stubborn(ToolCall(name)), reader)
    assert (len(reader.calls), len(run.requests)) == (times, times + 1)
    assert run.final_text == "That is all I know."


@pytest.mark.parametrize("call", [ToolCall("no_such_tool"), ToolCall("send", {"to": 5}), ToolCall("send", '{"to')])
async def test_K9_five_rounds_in_which_nothing_could_be_run_are_the_last(call: ToolCall) -> None:
    calls = [call, ToolCall(call.name, '{"to": [1]}')]
    send = tool("send")
    _, run = await played(stubborn(*calls), send)
    assert send.calls == []
    assert len(run.requests) == 6
    assert run.requests[-1].last_user.endswith(CONCLUDE_IDLE)
    assert run.final_text == "That is all I know."


async def test_K9_a_run_that_gets_somewhere_is_told_nothing() -> None:
    count = Tool("count", fn=lambda: f"number {len(count.calls)}")
    _, run = await played(stubborn(ToolCall("count")), count, max_tool_iterations=30)
    assert len(count.calls) == 30
    assert not any(REPEATED in request.text for request in run.requests)


async def test_K9_pictures_that_differ_are_no_same_result() -> None:
    shots = Tool(
        "shot", fn=lambda: [{"type": "image_base64", "image_base64": f"data:image/png;base64,{len(shots.calls):04d}"}]
    )
    _, run = await played(stubborn(ToolCall("shot")), shots, max_tool_iterations=8)
    assert len(shots.calls) == 8
    assert run.final_text == "That is all I know."


async def test_K9_what_is_said_meanwhile_begins_the_count_anew_and_gives_the_tools_back() -> None:
    def said() -> str:
        if len(send.calls) in (4, 9):
            host.steer(f"once more after {len(send.calls)}")
        return "done"

    send = Tool("send", fn=said, parameters=TEXT)
    host = host_with(models=[Model("m1", default=stubborn(ToolCall("send")))], tools=[send])
    run = await host.say("Go on.")
    assert len(send.calls) == 14
    assert run.final_text == "That is all I know."
    await assert_sound(host, run)


async def test_K9_a_follow_up_after_the_conclusion_may_use_tools_again() -> None:
    def reply(request: ModelRequest) -> Reply:
        if request.extra_args.get("tool_choice") == "none":
            if len(send.calls) == 5:
                host.steer("and now?")
            return Reply("Concluded.")
        return Reply(tool_calls=[ToolCall("send")])

    send = tool("send")
    host = host_with(models=[Model("m1", default=reply)], tools=[send])
    run = await host.say("Go on.")
    assert len(send.calls) == 10
    assert run.final_text == "Concluded.\n\nConcluded."
    await assert_sound(host, run)


async def test_K9_the_small_profile_keeps_its_own_rules() -> None:
    send = tool("save_note")
    _, run = await played(stubborn(ToolCall("save_note", {"to": "x"})), send, model_profile="small")
    assert len(send.calls) == 3
    assert not any(REPEATED in request.text for request in run.requests)


async def test_K9_a_sentence_before_each_call_stands_once_in_the_answer() -> None:
    lead = "I look up the member first."
    reader = Tool("event_get_actor", type="platform", result={"name": "Ann"})
    _, run = await played(stubborn(ToolCall("event_get_actor"), text=lead), reader)
    assert len(reader.calls) == 20
    assert run.final_text == f"{lead}\n\nThat is all I know."
    assert run.deltas[-1] == run.final_text


@pytest.mark.parametrize("chunks", [1, 4, 25])
async def test_K9_a_lead_in_before_the_answer_itself_is_shown_once_too(chunks: int) -> None:
    lead = "Let me check that for you."
    replies = [Reply(lead, chunks=chunks, chunk_delay=0.001, tool_calls=[ToolCall("look")])] * 2
    final = Reply(f"{lead} It is noon.", chunks=chunks, chunk_delay=0.001)
    host = host_with(replies=[*replies, final], tools=[Tool("look", result="noon")])
    run = await host.say("What time is it?")
    assert run.final_text == f"{lead}\n\nIt is noon."
    await assert_sound(host, run)


async def test_K9_a_model_that_fails_while_its_repetition_is_held_back_gives_way_to_the_next() -> None:
    lead = "Let me check that for you."
    first = Reply(lead, tool_calls=[ToolCall("look")])
    broken = Reply(chunks=[lead[:12], lead[12:]], error=Reason.TIMEOUT, error_after=1)
    models = [Model("m1", [first, broken]), Model("m2", default="Noon.")]
    host = host_with(models=models, tools=[Tool("look", result="noon")])
    run = await host.say("What time is it?")
    assert run.final_text == f"{lead}\n\nNoon."
    await assert_sound(host, run)
