"""I8, K4, K5: replies that say nothing a person could read, calls told oddly, counters that are none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.channel.test_replying import UNSEEN
from tests.host import Model, Reply, Tool, ToolCall

from .scenes import assert_sound, host_with, rows

EMPTY = say(Notice.EMPTY_ANSWER, Locale.EN_US)
LAST = {"chunk": {"role": "assistant", "content": "", "is_final": True}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


def chunk(text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"chunk": {"role": "assistant", "content": text, **more}}


def call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    return chunk(tool_calls=[{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}])


@pytest.mark.parametrize("unseen", UNSEEN.values(), ids=UNSEEN.keys())
async def test_I8_a_reply_of_which_nobody_sees_anything_is_empty(unseen: str) -> None:
    models = [Model("m1", replies=[Reply(events=[chunk(unseen), LAST])]), Model("m2", replies=["Here."])]
    run = await host_with(models=models).say("go")
    assert run.final_text == "Here."
    host = host_with(replies=[Reply(events=[chunk(unseen), LAST]), "Next."])
    run = await host.say("go")
    assert run.final_text == EMPTY and not run.deltas[:-1]
    assert rows(host)[-1] == ("assistant", EMPTY)
    await assert_sound(host, run)
    await assert_sound(host, await host.say("more"))


@pytest.mark.parametrize("unseen", [text for text in UNSEEN.values() if text.strip()], ids=ascii)
@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_I8_before_a_call_it_is_no_text(unseen: str, profile: str) -> None:
    first = {"chunk": {**chunk(unseen)["chunk"], **call("look", "{}")["chunk"], "content": unseen}}
    host = host_with(
        replies=[Reply(events=[first, LAST]), "Done."], tools=[Tool("look")], config={"model-profile": profile}
    )
    run = await host.say("go")
    assert run.final_text == "Done."
    assert [one.get("content") for one in run.requests[-1].messages if one.get("tool_calls")] in ([None], [])
    await assert_sound(host, run)


async def test_I8_such_an_answer_of_another_runner_is_no_turn_of_the_history() -> None:
    host = host_with(replies=["Fine."])
    host.remember(("user", "One"), ("assistant", "\u200b"), ("user", "Two"), ("assistant", "\ufeff \u2060"))
    run = await host.say("go")
    assert run.requests[-1].roles[-1] == "user" and "assistant" not in run.requests[-1].roles
    await assert_sound(host, run)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": -1, "total_tokens": -2},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": "many"},
        {"prompt_tokens": {"a": 1}, "total_tokens": []},
        {"prompt_tokens": 10**30, "cost": 0.25, "details": {"x": [1], "y": {"z": {"z": {"z": {"z": {"z": 1}}}}}}},
        {"prompt_tokens": None, "completion_tokens": None, "odd": float("nan"), "far": float("inf")},
        {f"counter {number}": 10**12 for number in range(20_000)},
    ],
    ids=["negative", "half", "words", "objects", "huge", "nan", "many"],
)
async def test_I8_odd_usage_never_fails_a_run_that_has_its_answer(usage: dict[str, Any]) -> None:
    host = host_with(replies=[Reply("The answer.", usage=usage)])
    run = await host.say("go")
    assert (run.status, run.final_text, run.finish_reason) == ("completed", "The answer.", "stop")
    await assert_sound(host, run)


async def test_I8_counters_that_cannot_be_read_do_not_pass_half_a_reply_for_a_whole_one() -> None:
    events = [chunk("Half"), {"usage": {"prompt_tokens": "many"}}, chunk(" and half."), LAST]
    run = await host_with(replies=[Reply(events=events)]).say("go")
    assert run.final_text is not None and run.final_text.startswith("Half\n\n")
    assert run.finish_reason == "error"


SENT = '{"text": "hi"}'


@pytest.mark.parametrize(
    "events",
    [
        [call("send", SENT), call("send", SENT)],
        [call("send", ""), call("send", '{"text":', "c2"), call("send", ' "hi"}', "c2")],
        [call("send", SENT[:9]), call("send", SENT[:11]), call("send", SENT)],
        [call("send", "{}"), call("send", SENT + SENT)],
    ],
    ids=["resent", "renamed", "growing", "opened and glued"],
)
async def test_K4_a_call_that_is_told_oddly_runs_once_and_stands_once_in_the_history(events: list[Any]) -> None:
    tool = Tool("send", takes_dict=True, fn=lambda values: values, parameters=TEXT)
    host = host_with(replies=[Reply(events=[*events, LAST]), "Sent."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == [{"text": "hi"}]
    assert len(run.of("tool.call.started")) == 1
    assert sum(len(message.get("tool_calls") or ()) for message in run.requests[-1].messages) == 1
    await assert_sound(host, run)


async def test_K5_a_character_cut_in_the_middle_is_whole_in_answer_arguments_and_history() -> None:
    tool = Tool("send", takes_dict=True, fn=lambda values: values, parameters=TEXT)
    events = [
        chunk("Sending \ud83d"),
        chunk("\ude42"),
        call("send", '{"text": "\ud83d'),
        call("send", '\ude42"}'),
        LAST,
    ]
    host = host_with(replies=[Reply(events=events), "Sent."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == [{"text": "🙂"}]
    assert run.final_text == "Sending 🙂\n\nSent."
    assert [one["content"] for one in run.requests[-1].messages if one.get("tool_calls")] == ["Sending 🙂"]
    await assert_sound(host, run)


@pytest.mark.parametrize("arguments", ["null", "", '""', ' "null" '])
async def test_K5_nothing_is_enough_for_a_tool_that_needs_nothing_and_else_the_error_says_what(arguments: str) -> None:
    now = Tool("now", result="12:00", parameters={"type": "object", "properties": {}})
    send = Tool("send", result="sent", parameters={**TEXT, "required": ["text"]})
    reply = Reply(tool_calls=[ToolCall("now", arguments, id="a"), ToolCall("send", arguments, id="b")])
    host = host_with(replies=[reply, "Done."], tools=[now, send])
    run = await host.say("go")
    assert (now.calls, send.calls) == ([{}], [])
    (refused,) = [one["content"] for one in run.requests[-1].messages if one.get("tool_call_id") == "b"]
    assert '"text"' in refused
    await assert_sound(host, run)


async def test_C1_half_a_thought_that_breaks_off_is_a_turn_before_what_was_said_meanwhile() -> None:
    async def broken() -> AsyncIterator[dict[str, Any]]:
        yield chunk(" ")
        yield chunk("<think>a")
        host.steer("more")
        yield {"chunk": {"role": 3}}

    host = host_with(replies=[lambda _request: Reply(events=broken()), "Here."])
    run = await host.say("go")
    assert run.requests[-1].roles[-3:] == ["user", "assistant", "user"]
    await assert_sound(host, run)
