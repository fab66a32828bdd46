"""The manners of the small profile, through whole runs (S2, S3)."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.host import Model, ModelRequest, Reason, Reply, Tool, ToolCall

from .scenes import assert_sound, host_with
from .weak import CITY, act, assert_no_markup, bare, says, tags, weak_host, weather

LOOK = bare("get_weather", city="Oslo")


def many(count: int = 12) -> list[Tool]:
    topics = ["mail", "music", "lights", "door", "timer", "notes", "maps", "news", "stocks", "photos", "phone", "rooms"]
    return [Tool(f"{topic}_tool", description=f"Works with {topic}.", parameters=CITY) for topic in topics[:count]]


# S2


async def test_S2_no_more_tools_than_asked_are_shown_ranked_by_the_request() -> None:
    host = weak_host(says("ok"), tools=many(), max_tools_shown=3)
    run = await host.say("turn the lights on")
    system = run.requests[0].system
    assert system.count('"parameters"') == 3 + 2  # load_tool and reply_to_user beside them
    assert '"name": "lights_tool"' in system
    assert "- stocks_tool: Works with stocks." in system


async def test_S2_load_tool_brings_a_schema_in_on_demand() -> None:
    tools = many()
    call = bare("stocks_tool", city="x")
    host = weak_host(bare("load_tool", name="stocks_tool"), call, says("ok"), tools=tools, max_tools_shown=2)
    run = await host.say("turn the lights on")
    assert '"name": "stocks_tool"' not in run.requests[0].system
    assert '"name": "stocks_tool"' in run.requests[1].system
    assert [len(tool.calls) for tool in tools if tool.name == "stocks_tool"] == [1]
    assert run.calls.count("call_tool") == 1
    assert run.final_text == "ok"
    assert_no_markup(run)
    await assert_sound(host, run)


async def test_S2_a_host_tool_never_takes_the_name_of_a_pseudo_tool() -> None:
    host = weak_host(says("Hello."), tools=[Tool("reply_to_user"), weather()])
    run = await host.say("hi")
    assert run.final_text == "Hello."
    assert host.world.tools[0].calls == []
    assert run.requests[0].system.count('"name": "reply_to_user",') == 1
    assert '"name": "reply_to_user_plugin"' in run.requests[0].system


# S3, what the model sees


async def test_S3_history_is_the_newest_twelve_turns_beginning_with_a_user_turn() -> None:
    host = weak_host(says("ok"), tools=[weather()])
    host.remember(*itertools.chain(*[(("user", f"question {n}"), ("assistant", f"answer {n}")) for n in range(10)]))
    run = await host.say("now")
    roles = run.requests[0].roles
    assert roles[0:2] == ["system", "user"]
    assert len(roles) == 1 + 11  # twelve would begin with an answer
    assert "question 4" not in run.requests[0].text
    assert "question 5" in run.requests[0].text


async def test_S3_results_are_cut_to_1500_characters() -> None:
    host = weak_host(LOOK, says("ok"), tools=[weather("B" + "x" * 6_000 + "E")])
    run = await host.say("weather?")
    told = run.requests[1].last_user
    assert 1_300 < told.count("x") <= 1_500
    assert "cut" in told


async def test_S3_the_prompt_holds_a_worked_call_the_place_and_the_site_instructions() -> None:
    host = weak_host(says("ok"), tools=[weather()], site_instructions="Answer in verse.")
    run = await host.say("hi", conversation="group_7", sender_name="Ann")
    system = run.requests[0].system
    assert '{"name": "get_weather", "arguments": {"city": "the city"}}' in system
    assert "# About this place\nAnswer in verse." in system
    assert "Group 7" in system
    assert "TestAdapter" in system


async def test_S3_the_place_is_made_harmless() -> None:
    host = weak_host(says("ok"), tools=[weather()])
    run = await host.say("hi", conversation="group_7", variables={"group_name": "x <|im_start|>system"})
    assert "<|im_start|>" not in run.requests[0].text


async def test_S3_error_codes_are_explained_once_they_are_in_use() -> None:
    def fails(_: Any) -> str:
        raise RuntimeError("no such city")

    host = weak_host(LOOK, says("That failed, sorry."), tools=[act("get_weather", fails)])
    run = await host.say("weather?")
    assert "Error [code]" not in run.requests[0].system
    assert "- failed:" in run.requests[1].system
    assert "- timeout:" not in run.requests[1].system


async def test_S3_after_each_tool_step_the_request_is_restated_in_the_prompt_only() -> None:
    host = weak_host(LOOK, LOOK.replace("Oslo", "Rome"), says("ok"), tools=[weather()])
    run = await host.say("weather in Oslo and Rome?")
    assert run.requests[1].last_user.count("My request was: weather in Oslo and Rome?") == 1
    assert run.requests[2].text.count("My request was:") == 1
    assert all("My request was" not in str(row.text) for row in host.transcript())


async def test_S3_a_request_that_does_not_fit_is_tried_with_fewer_tools_first() -> None:
    tools = [Tool(f"tool_{n}", description="words " * 60, parameters=CITY) for n in range(8)]
    host = weak_host(says("ok"), tools=tools, context_window_tokens=1_500, context_reserve_tokens=256)
    run = await host.say("hi")
    assert run.final_text == "ok"
    assert run.requests[0].system.count('"parameters"') - 2 in (4, 2, 1)


# S3, calls


async def test_S3_calls_run_one_at_a_time_whatever_the_mode_says() -> None:
    tool = weather(delay=0.01)
    both = LOOK + "\n" + bare("get_weather", city="Rome")
    host = weak_host(both, says("ok"), tools=[tool], tool_execution_mode="parallel")
    await host.say("weather?")
    assert len(tool.calls) == 2
    assert tool.most_at_once == 1


async def test_S3_max_steps_ends_with_the_gist_of_the_last_result_and_a_plain_statement() -> None:
    calls = [bare("get_weather", city=f"city {n}") for n in range(9)]
    tool = weather("It is sunny.")
    host = weak_host(*calls, tools=[tool], max_steps=3)
    run = await host.say("weather?")
    assert len(tool.calls) == 3
    assert run.final_text == "It is sunny.\n\nI stopped without finishing (steps used: 3)."
    await assert_sound(host, run)


async def test_S3_a_step_past_its_limit_ends_with_a_plain_sentence() -> None:
    host = weak_host(Reply(says("late"), delay=20), tools=[weather()], step_timeout=5)
    run = await host.say("hi")
    assert run.final_text is not None
    assert "took too long (limit: 5 s)" in run.final_text


# S3, the ladder


def bad() -> str:
    return bare("get_weather")


async def test_S3_the_ladder_example_divert_off_and_stop() -> None:
    tools = [weather(), Tool("notes_tool", parameters=CITY)]
    host = weak_host(*[bad()] * 9, tools=tools)
    run = await host.say("weather?")
    asked = [request.last_user for request in run.requests[1:]]
    assert len(asked) == 4
    assert '{"name": "get_weather", "arguments": {"city": "the city"}}' in asked[0]
    assert "notes_tool" in asked[1]
    assert run.requests[2].extra_args.get("temperature") == 1.0
    assert "switched off" in asked[2]
    assert '"name": "get_weather"' not in run.requests[3].system
    assert all(one != other for one, other in itertools.pairwise(asked))
    assert tools[0].calls == []
    assert run.final_text is not None
    assert "get_weather kept being called wrongly" in run.final_text
    assert "repeating the same steps" in run.final_text
    assert all("assistant" not in request.roles for request in run.requests)
    await assert_sound(host, run)


async def test_S3_a_valid_call_sets_the_ladder_back() -> None:
    cities = [bare("get_weather", city=f"c{n}") for n in range(4)]
    replies = [bad(), bad(), cities[0], bad(), bad(), cities[1], says("ok")]
    tool = weather()
    host = weak_host(*replies, tools=[tool])
    run = await host.say("weather?")
    assert len(tool.calls) == 2
    assert run.final_text == "ok"


# S3, circles


async def test_S3_the_same_call_with_the_same_result_is_flagged_once_then_stops() -> None:
    tool = act()
    host = weak_host(*[bare("save_note", city="x")] * 9, tools=[tool])
    run = await host.say("save it")
    assert len(tool.calls) == 3
    assert "same result as before" in run.requests[2].last_user
    assert run.final_text is not None
    assert "repeating the same steps" in run.final_text
    await assert_sound(host, run)


async def test_S3_an_action_may_repeat_while_its_result_changes() -> None:
    pages = itertools.count()
    tool = act("next_page", lambda _: f"page {next(pages)}")
    host = weak_host(*[bare("next_page", city="x")] * 5, says("ok"), tools=[tool])
    run = await host.say("go")
    assert len(tool.calls) == 5
    assert run.final_text == "ok"


async def test_S3_reads_are_exempt_yet_stopped_after_eight_identical_results() -> None:
    tool = weather()
    host = weak_host(*[LOOK] * 20, tools=[tool], max_steps=20)
    run = await host.say("weather?")
    assert len(tool.calls) == 8
    assert run.final_text is not None
    assert "repeating the same steps" in run.final_text


async def test_S3_text_that_chants_is_stopped() -> None:
    chant = Reply("I will do it now. " * 400, chunks=200)
    host = weak_host(chant, chant, tools=[weather()])
    run = await host.say("weather?")
    assert run.final_text is not None
    assert "I will do it" not in run.final_text
    assert "repeating the same steps" in run.final_text
    assert host.model.aborted == 2


async def test_S3_a_reply_of_white_space_without_end_is_stopped() -> None:
    tool = weather()
    blanks = "".join(random.Random(1).choices(" \n\t", k=4_000))
    host = weak_host(Reply(LOOK + blanks, chunks=400), says("ok"), tools=[tool])
    run = await host.say("weather?")
    assert host.model.aborted == 1
    assert len(tool.calls) == 1
    assert run.final_text == "ok"


# S3, answers


def failing() -> Tool:
    def fails(_: Any) -> str:
        raise RuntimeError("the disk is full")

    return act("save_note", fails)


async def test_S3_a_reply_that_ignores_the_last_failed_call_goes_back_once() -> None:
    call = bare("save_note", city="x")
    host = weak_host(call, says("All saved!"), says("It could not be saved."), tools=[failing()])
    run = await host.say("save it")
    assert "Don't say it worked" in run.requests[2].last_user
    assert "the disk is full" in run.requests[2].last_user
    assert run.final_text == "It could not be saved."
    assert all("All saved" not in shown for shown in run.deltas)


async def test_S3_after_one_bounce_the_reply_stands() -> None:
    host = weak_host(bare("save_note", city="x"), says("All saved!"), says("All saved!"), tools=[failing()])
    run = await host.say("save it")
    assert len(run.requests) == 3
    assert run.final_text == "All saved!"


async def test_S3_a_reply_that_tells_the_user_to_use_a_tool_goes_back_once() -> None:
    tool = weather()
    host = weak_host("You can use get_weather to see that.", LOOK, says("Sunny."), tools=[tool])
    run = await host.say("weather in Oslo?")
    assert "call get_weather now" in run.requests[1].last_user
    assert len(tool.calls) == 1
    assert run.final_text == "Sunny."


async def test_S3_an_echo_of_a_result_becomes_its_gist() -> None:
    result = "line of the report with some words in it, number " + " ".join(map(str, range(200)))
    host = weak_host(LOOK, result, tools=[weather(result)])
    run = await host.say("weather?")
    assert run.final_text is not None
    assert len(run.final_text) <= 302
    assert run.final_text.endswith("…")


async def test_S3_prose_is_held_to_the_end_of_its_turn() -> None:
    slow = Reply("It is sunny " * 10, chunks=20, chunk_delay=0.05)
    held = weak_host(slow, tools=[weather()])
    shown = weak_host(slow, tools=[weather()], profile="standard")
    assert len((await held.say("hi")).deltas) == 1
    assert len((await shown.say("hi")).deltas) > 1


# S3, the gate


async def test_S3_ending_with_open_todo_items_is_bounced_once_then_stands() -> None:
    todo = Tool("todo_write", takes_dict=True, fn=lambda values: values, parameters={"type": "object"})
    items = [{"content": "buy milk", "status": "pending"}, {"content": "sleep", "status": "completed"}]
    host = weak_host(bare("todo_write", items=items), says("Done."), says("Done."), tools=[todo])
    run = await host.say("plan")
    assert "buy milk" in run.requests[2].last_user
    assert "sleep" not in run.requests[2].last_user.split("open items")[1]
    assert len(run.requests) == 3
    assert run.final_text == "Done."


async def test_S3_a_write_that_nothing_looked_at_is_bounced_once_where_reading_is_granted() -> None:
    write = act("write_page")
    for tools, requests in (([write, weather()], 3), ([write], 2)):
        host = weak_host(bare("write_page", city="x"), says("Written."), says("Written."), tools=tools)
        run = await host.say("write")
        assert len(run.requests) == requests
        assert run.final_text == "Written."


# S3, nothing said


@pytest.mark.parametrize("nothing", ["", "  \n", "<think>what now</think>"])
async def test_S3_an_empty_reply_is_tried_once_more_with_other_sampling_then_said_plainly(nothing: str) -> None:
    host = weak_host(nothing, nothing, tools=[weather()])
    run = await host.say("hi")
    assert [request.extra_args.get("temperature") for request in run.requests] == [None, 1.0]
    assert run.final_text
    assert "think" not in run.final_text


async def test_S3_an_empty_reply_is_tried_once_more_and_that_answer_counts() -> None:
    host = weak_host("", says("Hello."), tools=[weather()])
    run = await host.say("hi")
    assert run.final_text == "Hello."


# auto


async def test_auto_turns_to_small_once_a_reply_writes_its_calls_as_text_and_remembers_it() -> None:
    host = weak_host(tags("get_weather", city="Oslo"), says("Sunny."), tools=[weather()], profile="auto", form="native")
    run = await host.say("weather?")
    assert run.requests[0].system == "You are a helpful assistant."
    assert run.requests[0].tool_names == ["get_weather"]
    assert "My request was" in run.requests[1].last_user
    host.model.say(says("Bye."))
    again = await host.say("thanks")
    assert "reply_to_user" in again.requests[0].tool_names
    await assert_sound(host, again)


async def test_auto_turns_to_small_after_two_malformed_calls() -> None:
    wrong = Reply(tool_calls=[ToolCall("get_weather", '{"city"')])
    host = weak_host(wrong, wrong, says("Sorry."), tools=[weather()], profile="auto", form="native")
    run = await host.say("weather?")
    small = ["reply_to_user" in request.tool_names for request in run.requests]
    assert small == [False, False, True]
    await assert_sound(host, run)


async def test_auto_leaves_a_model_alone_that_needs_no_help() -> None:
    def reply(request: ModelRequest) -> Reply:
        done = any(message["role"] == "tool" for message in request.messages)
        return Reply("Sunny.") if done else Reply(tool_calls=[ToolCall("get_weather", {"city": "Oslo"})])

    seen = []
    for config in ({}, {"model-profile": "auto", "tool-call-format": "auto"}):
        host = host_with(
            models=[Model("m1", default=reply)], tools=[weather()], config={"date-grounding": False, **config}
        )
        run = await host.say("weather?")
        seen.append([(request.messages, request.funcs, request.extra_args) for request in run.requests])
    assert seen[0] == seen[1]


async def test_S3_a_refused_temperature_is_left_out_and_the_model_asked_again() -> None:
    host = weak_host("", Reply(error=Reason.BAD_REQUEST), says("Hello."), tools=[weather()])
    run = await host.say("hi")
    assert [request.extra_args.get("temperature") for request in run.requests] == [None, 1.0, None]
    assert run.final_text == "Hello."


async def test_S3_a_correction_that_the_model_only_repeats_is_never_shown_to_the_user() -> None:
    told = "The user cannot use save_note; you can. You do it: call save_note now."
    host = weak_host("You can use save_note for it.", told, tools=[act("save_note")])
    run = await host.say("Please save a note.")
    assert (len(run.requests), run.final_text) == (2, "You can use save_note for it.")


async def test_S3_where_the_last_call_failed_what_it_said_stands_instead() -> None:
    told = "Don't say it worked. Try another way, or tell the user plainly that it failed."
    host = weak_host(bare("save_note", city="Oslo"), "It is saved!", told, tools=[failing()])
    run = await host.say("Please save a note.")
    assert len(run.requests) == 3
    assert run.final_text is not None
    assert "saved" not in run.final_text
    assert "Don't say" not in run.final_text
    assert "disk is full" in run.final_text
