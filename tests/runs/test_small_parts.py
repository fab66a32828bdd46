"""The parts of the small profile, left out: all of them is `standard`, and one of them is that one (S3, S6, Q5)."""

from __future__ import annotations

from typing import Any

import pytest

from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Part, all_but
from tests.host import Model, Reply, RunRecord, TestHost, ToolCall, full_manifest
from tests.written import bare

from .weak import act, weather

LOOK = ToolCall("get_weather", {"city": "Oslo"})


async def say(parts: frozenset[Part], *replies: Any, profile: str = "small", form: str = "native") -> RunRecord:
    host = TestHost(
        DefaultRunner(parts=parts),
        manifest=full_manifest(),
        models=[Model("m1", list(replies))],
        tools=[weather(), act("save_note")],
        config={"model-profile": profile, "tool-call-format": form, "date-grounding": False},
    )
    return await host.say("weather in Oslo?")


async def test_S6_without_all_parts_the_requests_are_those_of_standard() -> None:
    replies = [Reply(tool_calls=[LOOK]), Reply(tool_calls=[ToolCall("get_weather")]), "It is sunny."]
    bare_small, standard = await say(frozenset(), *replies), await say(EVERY_PART, *replies, profile="standard")
    assert [request.messages for request in bare_small.requests] == [each.messages for each in standard.requests]
    assert [request.funcs for request in bare_small.requests] == [each.funcs for each in standard.requests]
    assert bare_small.final_text == standard.final_text == "It is sunny."


async def test_S1_without_lenient_reading_a_call_in_text_is_words() -> None:
    written = '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```'
    run = await say(all_but(Part.LENIENT_READING), written)
    assert run.calls.count("call_tool") == 0
    assert run.final_text == written
    assert (await say(EVERY_PART, written, "Sunny.")).calls.count("call_tool") == 1


async def test_S3_without_the_ladder_a_bad_call_is_answered_in_the_history() -> None:
    replies = [bare("get_weather"), "I can't."]
    run = await say(all_but(Part.LADDER), *replies, form="json")
    assert '{"name": "get_weather", "arguments": {}}' in run.requests[1].text
    assert (
        '{"name": "get_weather", "arguments": {}}'
        not in (await say(EVERY_PART, *replies, form="json")).requests[1].text
    )


@pytest.mark.parametrize(
    ("part", "sign"),
    [
        (Part.WORKED_CALL, "For example, a call of"),
        (Part.RESTATEMENT, "My request was:"),
        (Part.REPLY_TOOL, "reply_to_user"),
        (Part.PLACE, "You are in a chat on"),
        (Part.REPLAY, "Result of get_weather"),
    ],
)
async def test_S3_a_part_left_out_leaves_no_trace_in_the_prompt(part: Part, sign: str) -> None:
    replies = [bare("get_weather", city="Oslo"), "It is sunny in Oslo."]
    with_it, without = await say(EVERY_PART, *replies, form="json"), await say(all_but(part), *replies, form="json")
    assert sign in with_it.requests[-1].text
    assert sign not in without.requests[-1].text
