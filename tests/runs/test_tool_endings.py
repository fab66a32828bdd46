"""How tools end whole runs: by their own wish, or since no more rounds are allowed (D5, D6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import Model, ModelRequest, Reason, Reply, Tool, ToolCall

from .scenes import LOOK, LOOKING, assert_sound, broken_rules, calls, host_with, results

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
