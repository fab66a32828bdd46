"""What comes as a stream, and what is made of it (C1, C2, C4, C6)."""

from __future__ import annotations

from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import Fault, Model, Reply, Tool, ToolCall

from .scenes import assert_sound, host_with, rows


def chunk(text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"chunk": {"role": "assistant", "content": text, **more}}


def fragment(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return chunk(tool_calls=[call])


USAGE = {"usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}


async def test_C2_text_and_usage_that_come_after_is_final_are_read() -> None:
    host = host_with(
        replies=[Reply(events=[chunk("Hel"), chunk("lo", is_final=True), chunk(" there", is_final=True), USAGE])]
    )
    run = await host.say("go")
    assert run.final_text == "Hello there"
    assert run.usage is not None
    assert run.usage["total_tokens"] == 8
    await assert_sound(host, run)


async def test_C2_a_stream_without_any_final_flag_loses_no_tail() -> None:
    host = host_with(replies=[Reply(events=[chunk("a"), chunk("b"), chunk("c")])])
    run = await host.say("go")
    assert run.final_text == "abc"


async def test_C2_white_space_of_every_chunk_is_kept() -> None:
    pieces = ["  two", " words", "\n\n", "\tlist\n", "  - x  ", "\n"]
    host = host_with(replies=[Reply(chunks=pieces)])
    run = await host.say("go")
    assert run.final_text == "".join(pieces)
    await assert_sound(host, run)


async def test_C2_fragments_of_calls_that_take_turns_are_put_together_by_id() -> None:
    tools = [Tool("a", takes_dict=True, fn=lambda values: values), Tool("b", takes_dict=True, fn=lambda values: values)]
    calls = [ToolCall("a", {"text": "first call"}, id="x", pieces=5), ToolCall("b", {"n": 2}, id="y", pieces=4)]
    host = host_with(replies=[Reply(tool_calls=calls, interleaved=True), "Done."], tools=tools)
    run = await host.say("go")
    assert (tools[0].calls, tools[1].calls) == ([{"text": "first call"}], [{"n": 2}])
    await assert_sound(host, run)


async def test_C2_two_calls_of_one_tool_with_equal_arguments_both_run() -> None:
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    same = [ToolCall("look", {"n": 1}, id=f"c{n}") for n in range(2)]
    host = host_with(replies=[Reply(tool_calls=same), "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == [{"n": 1}, {"n": 1}]
    await assert_sound(host, run)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([fragment("", "look", '{"n": 1}'), fragment("", "look", '{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("", "look", '{"n"'), fragment("", "look", ": 1}")], [{"n": 1}]),
        ([fragment("c", "look", '{"n": 1}{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("c", "look", '{"n": 1}'), fragment("c", "look", '{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("c", "look", ""), fragment("d", "look", "")], [{}, {}]),
    ],
)
async def test_C2_ids_that_are_missing_or_the_same_lose_no_call(events: list[Any], expected: list[Any]) -> None:
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    host = host_with(replies=[Reply(events=events), "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == expected
    await assert_sound(host, run)


async def test_C2_where_streaming_is_not_granted_the_model_is_invoked_and_the_answer_is_the_same() -> None:
    model = Model("m1", operations=frozenset({"invoke", "count_tokens"}))
    model.say(Reply("Looking. ", tool_calls=[ToolCall("look", {"n": 1})]), "Here.")
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    host = host_with(models=[model], tools=[tool])
    run = await host.say("go")
    assert run.calls.count("invoke_llm_stream") == 0
    assert tool.calls == [{"n": 1}]
    assert run.final_text == "Looking. \n\nHere."
    await assert_sound(host, run)


async def test_C2_an_answer_cut_by_its_length_says_so_in_the_answer() -> None:
    host = host_with(replies=[Reply("Once upon a", finish_reason="length")])
    run = await host.say("go")
    assert run.final_text == f"Once upon a\n\n{say(Notice.LENGTH_LIMIT_NOTE, Locale.EN_US)}"
    await assert_sound(host, run)


@pytest.mark.parametrize(("setting", "sent"), [(True, True), (False, None)])
async def test_C4_remove_think_is_sent_only_when_set(setting: bool, sent: bool | None) -> None:
    run = await host_with(config={"remove-think": setting}).say("go")
    assert [request.remove_think for request in run.requests] == [sent]


async def test_C2_thoughts_shown_in_the_answer_do_not_go_back_to_the_model() -> None:
    host = host_with(replies=[Reply("The answer.", reasoning="secret thought"), "Next."])
    await host.say("go")
    run = await host.say("more")
    assert "secret thought" not in run.requests[-1].text
    assert "The answer." in run.requests[-1].text
    await assert_sound(host, run)


async def test_C2_a_thought_without_an_answer_counts_as_no_answer_of_that_model() -> None:
    models = [Model("m1", replies=[Reply(reasoning="hmm")]), Model("m2", replies=["Here."])]
    run = await host_with(models=models, config={"remove-think": True}).say("go")
    assert run.final_text == "Here."


async def test_C6_text_before_a_tool_call_stays_readable_above_the_answer() -> None:
    host = host_with(replies=[Reply("Let me look.", tool_calls=[ToolCall("look")]), "Found it."], tools=[Tool("look")])
    run = await host.say("go")
    assert run.final_text == "Let me look.\n\nFound it."
    assert len(run.cards) == 1
    assert rows(host)[-1] == ("assistant", "Let me look.\n\nFound it.")
    await assert_sound(host, run)


async def test_C2_items_of_a_stream_that_nobody_can_read_make_the_next_model_answer() -> None:
    models = [Model("m1", replies=["never"]), Model("m2", replies=["Here."])]
    for reply in ({"chunk": "text"}, {"chunk": {"role": 3}}, {"chunk": {"role": "assistant", "tool_calls": [{}]}}):
        host = host_with(models=[Model("m1"), Model("m2", replies=["Here."])])
        host.fail("invoke_llm_stream", Fault.malformed(reply))
        run = await host.say("go")
        assert run.final_text == "Here."
        await assert_sound(host, run)
    assert len(models) == 2
