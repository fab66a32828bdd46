"""K2: ids of calls in whole runs, as the providers get them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.host import Model, Reason, Reply, RunRecord, Tool, ToolCall

from .scenes import assert_sound, host_with

MADE = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
LONG = "functions.look:0." + "x" * 300


def looks(*ids: str | None, name: str = "look") -> Reply:
    return Reply(tool_calls=[ToolCall(name, {"n": at}, id=an_id) for at, an_id in enumerate(ids)])


def looking() -> Tool:
    return Tool("look", takes_dict=True, fn=lambda values: values)


def ids_of(request: Any) -> list[str]:
    """The ids of all calls of a request; each result carries that of its call."""
    called = [call["id"] for message in request.messages for call in message.get("tool_calls") or ()]
    assert called == [message["tool_call_id"] for message in request.messages if message["role"] == "tool"]
    assert len(set(called)) == len(called)
    return called


def told(run: RunRecord) -> list[str]:
    started = [event["tool_call_id"] for event in run.of("tool.call.started")]
    assert sorted(started) == sorted(event["tool_call_id"] for event in run.of("tool.call.completed"))
    return started


@pytest.mark.parametrize("own", ["call_0", "functions.look:0", LONG, "调.用:1", "a b"])
async def test_K2_an_own_id_goes_back_as_it_was_and_names_the_events_too(own: str) -> None:
    host = host_with(replies=[looks(own), "Done."], tools=[looking()])
    run = await host.say("go")
    assert ids_of(run.requests[-1]) == told(run) == [own]
    await assert_sound(host, run)


async def test_K2_another_model_gets_an_id_of_ours_for_call_and_result() -> None:
    first = Model("m1", replies=[looks("call_abc", None), Reply(error=Reason.CONNECTION)])
    second = Model("m2", replies=[looks("functions.look:7"), "Done."])
    host = host_with(models=[first, second], tools=[looking()])
    run = await host.say("go")
    assert ids_of(first.requests[-1]) == ["call_abc", "call_1"]
    foreign = ids_of(second.requests[0])
    assert len(foreign) == 2 and all(MADE.fullmatch(each) for each in foreign)
    assert ids_of(second.requests[-1]) == [*foreign, "functions.look:7"]
    await assert_sound(host, run)


async def test_L8_replayed_calls_have_the_ids_under_which_their_model_knows_them_in_every_later_run() -> None:
    host = host_with(replies=[looks("call_abc", "c2"), looks("call_abc"), "Done."], tools=[looking()])
    sent = ids_of((await host.say("go")).requests[-1])
    seen = [ids_of((await host.say(text)).requests[-1]) for text in ("one", "two", "three")]
    assert sent == seen[0] == seen[1] == seen[2]
    assert sent[:2] == ["call_abc", "c2"] and MADE.fullmatch(sent[2])


@pytest.mark.parametrize("own", [LONG, "调.用:1", "call_abc"])
async def test_K2_another_model_reads_replayed_calls_under_ids_of_ours(own: str) -> None:
    first, second = Model("m1", replies=[looks(own), "Done."]), Model("m2")
    host = host_with(models=[first, second], tools=[looking()])
    await host.say("go")
    first.say(Reply(error=Reason.CONNECTION))
    await host.say("again")
    assert [len(ids_of(request)) for request in second.requests] == [1]
    assert MADE.fullmatch(ids_of(second.requests[0])[0])


async def test_K2_a_model_that_numbers_its_calls_reads_numbers_in_every_later_run() -> None:
    host = host_with(replies=[looks("functions.look:0", "functions.look:1"), "Done."], tools=[looking()])
    await host.say("go")
    host.world.models[0].say(looks("functions.look:2"), "Done.")
    run = await host.say("again")
    assert ids_of(run.requests[0]) == ["functions.look:0", "functions.look:1"]
    assert ids_of(run.requests[-1]) == ["functions.look:0", "functions.look:1", "functions.look:2"]
    run = await host.say("and now?")
    assert ids_of(run.requests[0]) == ["functions.look:0", "functions.look:1", "functions.look:2"]


async def test_K2_a_server_that_numbers_each_reply_from_zero_makes_no_id_twice() -> None:
    host = host_with(replies=[looks("functions.look:0"), looks("functions.look:0"), "Done."], tools=[looking()])
    await host.say("go")
    host.world.models[0].say(looks("functions.look:0"), "Done.")
    run = await host.say("again")
    assert ids_of(run.requests[-1]) == ["functions.look:0", "functions.look:1", "functions.look:2"]


async def test_L8_ids_that_were_sent_stay_when_a_model_begins_to_write_others() -> None:
    host = host_with(replies=[looks("functions.look:0"), "Done."], tools=[looking()])
    await host.say("go")
    host.world.models[0].say(looks("call_x"), "Done.")
    await host.say("again")
    run = await host.say("and now?")
    assert ids_of(run.requests[0]) == ["functions.look:0", "call_x"]


async def test_K2_ids_that_stand_in_a_text_are_ours() -> None:
    written = '<tool_call>{"id": "x-1", "name": "look", "arguments": {"n": 1}}</tool_call>'
    host = host_with(
        replies=[written, "Done."], tools=[looking()], config={"model-profile": "small", "tool-call-format": "native"}
    )
    run = await host.say("look")
    assert all(MADE.fullmatch(each) for each in told(run)) and len(told(run)) == 1
    assert all(MADE.fullmatch(each) for request in run.requests for each in ids_of(request))


async def test_K2_ids_of_the_owners_prompt_are_ours_and_each_stands_once() -> None:
    rows: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for number in range(2):
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        rows += [
            {"role": "user", "content": f"q{number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "seen"},
            {"role": "assistant", "content": "There."},
        ]
    run = await host_with(prompt=rows, tools=[looking()]).say("go")
    ids = ids_of(run.requests[-1])
    assert len(ids) == 2 and all(MADE.fullmatch(each) for each in ids)
