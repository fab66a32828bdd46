"""How tools end whole runs: by their own wish, or since no more rounds are allowed (D5, D6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.host import (
    Reason,
    Reply,
    Tool,
    ToolCall,
)

from .scenes import assert_sound, broken_rules, calls, host_with, results


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
