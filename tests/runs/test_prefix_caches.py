"""L8: what a provider's prefix cache can serve: each request begins as the one before it was sent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import pytest

from bench.prefix import shares_of, talk
from tests.host import Model, ModelRequest, Reply, RunRecord, Tool, ToolCall
from tests.host.script import Scripted

from .scenes import NUMBERED, assert_sound, host_with


def sent(request: ModelRequest) -> list[str]:
    """The request as a cache reads it: tools, then each message."""
    return [json.dumps(each, ensure_ascii=False) for each in (request.funcs, *request.messages)]


def asked_of(runs: Sequence[RunRecord], model: str = "m1") -> list[ModelRequest]:
    return [request for run in runs for request in run.requests if request.model == model]


def anew(earlier: ModelRequest, later: ModelRequest) -> list[str]:
    """What of the earlier request is not at the beginning of the later one."""
    before, after = sent(earlier), sent(later)
    same = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), len(before))
    return before[same:]


def numbered() -> list[Tool]:
    return [Tool("look", fn=lambda n: f"result {n}", parameters=NUMBERED)]


def look(n: int, said: str = "", call_id: str | None = None) -> Reply:
    return Reply(said, tool_calls=[ToolCall("look", {"n": n}, call_id)])


@pytest.mark.parametrize("ids", [(None, None, None), ("toolu_01", "toolu_02", "toolu_03"), ("call_9", "call_9", None)])
async def test_L8_the_rounds_of_a_run_are_replayed_as_they_were_sent(ids: tuple[str | None, ...]) -> None:
    replies: list[Scripted] = [
        look(1, "I look first. ", ids[0]),
        look(2, "", ids[1]),
        look(3, "Once more.\n", ids[2]),
        "It is three.",
    ]
    host = host_with(models=[Model("m1", replies=[*replies, "You are welcome.", *replies])], tools=numbered())
    for text in ("How many?", "Thanks.", "And now?"):
        await assert_sound(host, await host.say(text))
    requests = asked_of(host.runs)
    assert len(requests) == 9
    assert [anew(one, two) for one, two in itertools.pairwise(requests)] == [[]] * 8


async def test_L8_a_lead_in_that_people_read_once_is_replayed_each_time_it_was_sent() -> None:
    replies: list[Scripted] = [look(1, "Let me look."), look(2, "Let me look."), "Let me look. It is two."]
    host = host_with(models=[Model("m1", replies=[*replies, "Yes."])], tools=numbered())
    await host.say("How many?")
    run = await host.say("Sure?")
    assert run.requests[0].text.count("Let me look.") == 2
    assert "It is two." in run.requests[0].text


@pytest.mark.parametrize("form", ["native", "tags"])
async def test_L8_four_fifths_of_what_a_small_model_reads_can_be_served(form: str) -> None:
    host = await talk(8_000, turns=12, model_profile="small", tool_call_format=form)
    assert shares_of(host.runs).percent >= 78


async def test_L8_what_comes_with_a_failure_stands_behind_the_tools() -> None:
    replies: list[Scripted] = [look(1), look(2), "It failed."]
    broken = Tool("look", fn=lambda n: 1 / 0, parameters=NUMBERED)
    config = {"model-profile": "small", "tool-call-format": "tags"}
    host = host_with(models=[Model("m1", replies=replies)], tools=[broken], config=config)
    run = await host.say("How many?")
    before, after = run.requests[0].system, run.requests[1].system
    assert after.startswith(before) and len(after) > len(before)
