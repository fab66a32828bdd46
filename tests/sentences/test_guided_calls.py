"""S8: answers as calls, replayed and guided."""

from __future__ import annotations

from typing import Any

import pytest

from config.choices import CallFormat
from runner.small import reading
from runner.small.guiding import Guiding
from runner.small.modes import Mode, Modes
from runner.small.part import Part, Parts
from runner.small.reply_tool import ReplyDecoder
from tests.host import Reason, Reply
from tests.written import LOOK, says

from .stage import Change, act, look, play, shows, stage


def names_in_schema(request: Any) -> list[str] | None:
    asked = request.extra_args.get("response_format")
    return asked and [each["properties"]["name"]["const"] for each in asked["json_schema"]["schema"]["anyOf"]]


async def test_S8_the_text_of_the_reply_tool_is_the_answer_and_never_a_tool_call() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, says("Sunny."), "It is sunny.", form="guided")
        started = [data["tool_name"] for data in run.of("tool.call.started")]
        return "reply_to_user" in run.requests[0].system, run.final_text, started

    await shows(Part.REPLY_TOOL, scenario, wanted=(True, "Sunny.", []), without=(False, "It is sunny.", []))


async def test_S8_the_answer_is_streamed_as_it_is_written_decoded_out_of_the_json() -> None:
    text = 'Hello "you" – grüße 🙂 \n' * 3

    async def scenario(parts: Parts) -> object:
        run = await play(parts, Reply(says(text), chunks=20, chunk_delay=0.04), form="guided")
        return len(run.deltas) > 1, all(text.startswith(shown) for shown in run.deltas), run.final_text

    class Silent(ReplyDecoder):
        def feed(self, chunk: str) -> str:
            return ""

    deaf = Change(reading, "ReplyDecoder", Silent)
    await shows(deaf, scenario, wanted=(True, True, text), without=(False, True, text))


async def test_S8_an_answer_by_the_reply_tool_stands_in_the_history_as_an_answer() -> None:
    async def scenario(parts: Parts) -> object:
        host = stage(parts, says("Sunny."), tools=[look()], form="guided", profile="standard")
        await host.say("hi")
        return [row.text for row in host.transcript()]

    await shows(Part.LENIENT_READING, scenario, wanted=["hi", "Sunny."], without=["hi", says("Sunny.")])


@pytest.mark.parametrize("form", ["json", "guided"])
async def test_S8_earlier_turns_are_replayed_in_the_form_the_model_is_asked_to_write(form: str) -> None:
    async def scenario(parts: Parts) -> object:
        host = stage(parts, LOOK, says("Sunny."), says("Bye."), tools=[look()], form=form)
        await host.say("weather?")
        run = await host.say("thanks")
        return [one.get("content") or "" for one in run.requests[0].messages if one["role"] == "assistant"]

    await shows(Part.REPLAY, scenario, wanted=[LOOK, says("Sunny.")], without=["", "Sunny."])


@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_S8_guided_adds_a_schema_with_one_branch_for_each_tool_shown(profile: str) -> None:
    async def scenario(parts: Parts) -> object:
        tools = [look(), act()]
        run = await play(parts, says("ok"), tools=tools, form="guided", profile=profile, max_tools_shown=8)
        return names_in_schema(run.requests[0])

    await shows(Part.SCHEMA, scenario, wanted=["get_weather", "save_note", "reply_to_user"], without=None)


@pytest.mark.parametrize("form", ["native", "auto"])
async def test_S8_no_provider_parameter_is_sent_before_a_model_needs_it(form: str) -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, "ok", form=form, profile="standard" if form == "auto" else "small")
        return sorted(run.requests[0].extra_args)

    needy = Change(Modes, "of", lambda *_: Mode(False, CallFormat.GUIDED, schema=True))
    await shows(needy, scenario, wanted=[], without=["response_format"])


async def test_S8_auto_goes_to_the_schema_once_a_model_has_shown_that_it_needs_it() -> None:
    async def scenario(parts: Parts) -> object:
        fenced = f"```json\n{LOOK}\n```"
        run = await play(parts, fenced, says("Sunny."), form="auto", profile="standard")
        return [names_in_schema(request) for request in run.requests]

    names = ["get_weather", "reply_to_user"]
    await shows(Part.SCHEMA, scenario, wanted=[None, names], without=[None, None])


async def test_S8_a_schema_that_is_refused_is_left_out_for_the_run_and_the_next_best_form_used() -> None:
    async def scenario(parts: Parts) -> object:
        replies = [Reply(error=Reason.BAD_REQUEST), LOOK, says("Sunny.")]
        run = await play(parts, *replies, form="guided")
        return [names_in_schema(request) is not None for request in run.requests], run.final_text

    begin = Guiding.begin
    stubborn = Change(Guiding, "begin", lambda policy, model, conclude, **_: begin(policy, model, conclude=conclude))
    wanted, without = ([True, False, False], "Sunny."), ([True, True, True], "Sunny.")
    await shows(stubborn, scenario, wanted=wanted, without=without)


async def test_S8_a_schema_that_is_ignored_is_noticed_by_the_first_reply() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, f"I look.\n<tool_call>\n{LOOK}\n</tool_call>", says("Sunny."), form="guided")
        return [names_in_schema(request) is not None for request in run.requests], run.final_text

    believing = Change(Modes, "without_schema", lambda *_: None)
    text = "I look.\n\nSunny."
    await shows(believing, scenario, wanted=([True, False], text), without=([True, True], text))


async def test_S8_the_tools_shown_as_an_index_have_no_branch() -> None:
    async def scenario(parts: Parts) -> object:
        tools = [look(), act("save_note"), act("mail_tool")]
        run = await play(parts, says("ok"), text="weather", tools=tools, form="guided", max_tools_shown=1)
        return names_in_schema(run.requests[0])

    everything = ["get_weather", "save_note", "mail_tool", "reply_to_user"]
    await shows(Part.RANKING, scenario, wanted=["get_weather", "load_tool", "reply_to_user"], without=everything)
