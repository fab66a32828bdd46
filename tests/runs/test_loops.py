"""K9: loops end in every profile, with an answer, and a sentence said with each call is shown once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from runner.loop.loop import CONCLUDE_IDLE, CONCLUDE_REPEATED, REPEATED
from tests.host import Model, ModelRequest, Reason, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import assert_sound, host_with

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
