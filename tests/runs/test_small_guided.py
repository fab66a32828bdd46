"""Guided calls and the reply tool, through whole runs (S8)."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.host import Reason, Reply
from tests.written import bare, says, tags

from .scenes import assert_sound
from .weak import assert_no_markup, in_pieces, weak_host, weather


def schema_of(request: object) -> dict[str, object]:
    schema: dict[str, object] = request.extra_args["response_format"]["json_schema"]["schema"]  # type: ignore[attr-defined]
    return schema


@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_S8_a_schema_with_one_branch_for_each_tool_shown_goes_with_the_request(profile: str) -> None:
    tool = weather()
    call = bare("get_weather", city="Oslo")
    host = weak_host(call, says("Sunny."), tools=[tool], profile=profile, form="guided")
    run = await host.say("weather?")
    schema = schema_of(run.requests[0])
    names = [branch["properties"]["name"]["const"] for branch in schema["anyOf"]]  # type: ignore[attr-defined]
    assert names == ["get_weather", "reply_to_user"]
    for good in (call, says("x")):
        jsonschema.validate(json.loads(good), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "get_weather", "arguments": {}}, schema)
    assert run.requests[0].offered == []
    assert tool.calls == [{"city": "Oslo"}]
    assert run.final_text == "Sunny."
    await assert_sound(host, run)


@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_S8_the_text_of_the_reply_tool_is_the_answer_streamed_as_it_is_written(profile: str) -> None:
    text = 'Hello "you" – ' + "grüße 🙂 \n天气 " * 8
    reply = Reply(says(text), chunks=40, chunk_delay=0.02)
    host = weak_host(reply, tools=[weather()], profile=profile, form="guided")
    run = await host.say("hi")
    assert run.final_text == text
    assert len(run.deltas) >= 2
    assert all(text.startswith(shown) for shown in run.deltas)
    assert run.of("tool.call.started") == []
    assert_no_markup(run)
    await assert_sound(host, run)


async def test_S8_earlier_answers_are_replayed_in_the_form_the_model_is_asked_to_write() -> None:
    host = weak_host(says("Hello."), says("Bye."), tools=[weather()], profile="standard", form="guided")
    await host.say("hi")
    run = await host.say("bye")
    assert [one["content"] for one in run.requests[0].messages if one["role"] == "assistant"] == [says("Hello.")]
    assert run.final_text == "Bye."


async def test_S8_a_refused_schema_is_remembered_for_the_run_and_the_next_best_form_is_used() -> None:
    tool = weather()
    replies = [Reply(error=Reason.BAD_REQUEST), bare("get_weather", city="Oslo"), says("Sunny.")]
    host = weak_host(*replies, tools=[tool], form="guided")
    run = await host.say("weather?")
    assert ["response_format" in request.extra_args for request in run.requests] == [True, False, False]
    assert "reply_to_user" in run.requests[1].system
    assert tool.calls == [{"city": "Oslo"}]
    assert run.final_text == "Sunny."
    await assert_sound(host, run)


async def test_S8_a_schema_that_is_ignored_is_noticed_by_the_first_reply() -> None:
    tool = weather()
    replies = ["I will look it up for you first.", bare("get_weather", city="Oslo"), says("Sunny.")]
    host = weak_host(*replies, tools=[tool], profile="standard", form="guided")
    first = await host.say("weather?")
    assert first.final_text == "I will look it up for you first."
    assert any("ignored" in str(result) for result in first.results)
    host.model.say("unused")
    run = await host.say("go on")
    assert "response_format" in run.requests[0].extra_args  # remembered for a run, no longer
    assert tool.calls == [{"city": "Oslo"}]


async def test_S8_within_a_run_an_ignored_schema_is_not_sent_again() -> None:
    tool = weather()
    fenced = "<tool_call>get_weather</tool_call> I call it"
    host = weak_host("plain words " + fenced, says("Hm."), tools=[tool], form="guided")
    run = await host.say("weather?")
    assert ["response_format" in request.extra_args for request in run.requests] == [True, False]
    assert_no_markup(run)


async def test_S8_a_reply_cut_inside_the_reply_tool_keeps_what_was_read() -> None:
    cut = Reply('{"name": "reply_to_user", "arguments": {"text": "It is sunny in Os', chunks=9, finish_reason="length")
    host = weak_host(cut, tools=[weather()], profile="standard", form="guided")
    run = await host.say("weather?")
    assert run.final_text is not None
    assert run.final_text.startswith("It is sunny in Os")
    assert len(run.requests) == 1


async def test_S8_auto_goes_to_the_schema_once_a_model_has_shown_that_it_needs_it() -> None:
    replies = ["```json\n" + bare("get_weather", city="Oslo") + "\n```", says("Sunny.")]
    host = weak_host(*replies, tools=[weather()], profile="standard", form="auto")
    run = await host.say("weather?")
    assert ["response_format" in request.extra_args for request in run.requests] == [False, True]


async def test_S8_no_provider_parameter_is_sent_by_default() -> None:
    host = weak_host(in_pieces("Hi."), tools=[weather()], profile="standard", form="native")
    run = await host.say("hi")
    assert run.requests[0].extra_args == {}
    assert run.requests[0].tool_names == ["get_weather"]


async def test_S8_small_and_native_offers_the_reply_tool_natively_and_reads_what_is_written() -> None:
    tool = weather()
    replies = [bare("get_weather", city="Oslo"), says("Sunny.")]
    host = weak_host(*replies, tools=[tool], form="native")
    run = await host.say("weather?")
    assert run.requests[0].tool_names == ["get_weather", "reply_to_user"]
    assert run.final_text == "Sunny."
    assert_no_markup(run)
    await assert_sound(host, run)


async def test_S8_a_call_written_into_the_text_of_the_reply_tool_is_never_shown() -> None:
    tool = weather()
    nested = Reply(says("I look. " + tags("get_weather", city="Oslo")), chunks=12, chunk_delay=0.01)
    host = weak_host(nested, says("Sunny."), tools=[tool], form="guided")
    run = await host.say("weather?")
    assert tool.calls == [{"city": "Oslo"}]
    assert run.final_text == "I look.\n\nSunny."
    assert_no_markup(run)
    await assert_sound(host, run)
