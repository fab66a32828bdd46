"""K4-K6, I8, Sm: replies that end early, say nothing a person could read, are told oddly, or never end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from callformats import StreamReader
from callformats.thoughts import THOUGHTS
from config.locales import Locale
from config.notices import Notice, say
from runner.loop.turn import _AT_ONCE
from tests.channel.test_replying import UNSEEN
from tests.host import Model, Reason, Reply, Tool, ToolCall

from .scenes import LOOK, LOOKING, assert_sound, host_with, rows, words

# K6: a filter of the provider ends a reply, and a reply of thoughts alone is none.

NOTE = say(Notice.FILTERED_NOTE, Locale.EN_US)
SENTENCE = say(Notice.FILTERED, Locale.EN_US)
NO_ANSWER = say(Notice.NO_ANSWER_NOTE, Locale.EN_US)
SPELLINGS = [
    "content_filter",
    "content_filtered",
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "refusal",
    "sensitive",
]
THOUGHT = "<think>\nI should look.\n</think>\n"


def filtered(text: str = "", *calls: ToolCall, reason: str = "content_filter") -> Reply:
    return Reply(text, tool_calls=calls, finish_reason=reason)


@pytest.mark.parametrize("reason", SPELLINGS)
async def test_K6_what_was_shown_before_the_filter_stays_and_a_note_says_what_ended_it(reason: str) -> None:
    models = [Model("m1", replies=[filtered("The three steps are: first, take the", reason=reason)]), Model("m2")]
    host = host_with(models=models)
    run = await host.say("go")
    assert run.final_text == f"The three steps are: first, take the\n\n{NOTE}"
    assert (run.finish_reason, len(run.requests)) == ("stop", 1)
    assert rows(host)[-1] == ("assistant", run.final_text)
    await assert_sound(host, run)


@pytest.mark.parametrize("reason", SPELLINGS)
async def test_K6_where_the_filter_let_nothing_through_the_next_model_answers(reason: str) -> None:
    models = [Model("m1", replies=[filtered(reason=reason)]), Model("m2", replies=["Here."])]
    host = host_with(models=models, tools=[words()])
    run = await host.say("go")
    assert run.final_text == "Here."
    assert [request.model for request in run.requests] == ["m1", "m2"], "nothing in the request helps against a filter"
    await assert_sound(host, run)


@pytest.mark.parametrize(
    ("question", "locale"), [("go", Locale.EN_US), ("请看一下", Locale.ZH_HANS), ("посмотри", Locale.RU_RU)]
)
@pytest.mark.parametrize("second", [filtered(), Reply(error=Reason.RATE_LIMIT)], ids=["filtered", "busy"])
async def test_K6_in_the_end_the_person_reads_that_it_was_the_filter(
    second: Reply, question: str, locale: Locale
) -> None:
    host = host_with(models=[Model("m1", replies=[filtered(" \n")]), Model("m2", replies=[second])])
    run = await host.say(question)
    assert run.final_text == say(Notice.FILTERED, locale)
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert any("content_filter" in log for log in run.logs)
    await assert_sound(host, run)


async def test_K6_a_filter_in_a_later_turn_leaves_what_was_said_and_a_note() -> None:
    host = host_with(replies=[LOOKING, filtered()], tools=[words()])
    run = await host.say("go")
    assert run.final_text == f"Looking.\n\n{NOTE}"
    await assert_sound(host, run)


@pytest.mark.parametrize("text", ["I look it", ""])
async def test_K6_a_call_that_the_filter_cut_never_runs(text: str) -> None:
    tool = Tool("look")
    host = host_with(models=[Model("m1", replies=[filtered(text, ToolCall("look"))])], tools=[tool])
    run = await host.say("go")
    assert tool.calls == []
    assert run.final_text == (f"{text}\n\n{NOTE}" if text else SENTENCE)
    await assert_sound(host, run)


async def test_K6_a_refusal_in_words_is_an_answer() -> None:
    models = [Model("m1", replies=["I'm sorry, I can't help with that."]), Model("m2")]
    run = await host_with(models=models).say("go")
    assert run.final_text == "I'm sorry, I can't help with that."
    assert len(run.requests) == 1


@pytest.mark.parametrize("marks", THOUGHTS, ids=lambda marks: marks.opens)
@pytest.mark.parametrize("closed", [True, False])
async def test_K6_thoughts_alone_are_no_answer_where_they_are_shown_too(closed: bool, marks: object) -> None:
    thought = f"{marks.opens}\nI should look.{marks.closes if closed else ''}"  # type: ignore[attr-defined]
    host = host_with(models=[Model("m1", replies=[thought]), Model("m2", replies=["It is noon."])])
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1", "m2"]
    assert run.final_text is not None
    assert run.final_text.startswith(thought)
    assert run.final_text.endswith("It is noon.")
    assert "I should look" not in run.requests[-1].text
    await assert_sound(host, run)


async def test_K6_where_the_last_model_only_thought_the_person_reads_that_no_answer_came() -> None:
    host = host_with(replies=[Reply(reasoning="I should look.")])
    run = await host.say("go")
    assert run.final_text is not None
    assert run.final_text.startswith("<think>")
    assert run.final_text.endswith(NO_ANSWER)
    await assert_sound(host, run)


async def test_K6_where_thoughts_are_hidden_a_reply_of_them_is_the_usual_empty_answer() -> None:
    host = host_with(replies=[Reply(reasoning="I should look.")], config={"remove-think": True})
    run = await host.say("go")
    assert run.final_text == say(Notice.EMPTY_ANSWER, Locale.EN_US)


async def test_K6_a_thought_before_a_call_or_an_answer_is_part_of_it() -> None:
    replies = [Reply(THOUGHT, tool_calls=LOOK.tool_calls), Reply(f"{THOUGHT}It is noon.")]
    host = host_with(models=[Model("m1", replies=replies), Model("m2")], tools=[words()])
    run = await host.say("go")
    assert [request.model for request in run.requests] == ["m1", "m1"]
    assert run.final_text is not None
    assert run.final_text.endswith("It is noon.")
    await assert_sound(host, run)


async def test_K6_filtered_thoughts_alone_are_a_failure_of_that_model() -> None:
    host = host_with(models=[Model("m1", replies=[filtered(THOUGHT)]), Model("m2", replies=["It is noon."])])
    run = await host.say("go")
    assert run.final_text is not None
    assert run.final_text.endswith("It is noon.")
    await assert_sound(host, run)


# I8, K4, K5: replies that say nothing a person could read, calls told oddly, counters that are none.

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


# Sm: whatever a model writes, and however much of it, other chats of the worker go on meanwhile.

LENGTH = 60_000
INVOKED = frozenset({"invoke", "count_tokens"})
HOSTILE = {
    "line ends": "\n",
    "openers of tags": "<",
    "back-ticks": "`",
    "braces": "{",
    "brackets": "[",
    "calls that never close": "<tool_call>",
    "quotes": '"',
    "backslashes": "\\",
    "one long word": "a",
    "blanks": " ",
    "combining marks": "\u0301",
    "a chant": "I look it up. ",
    "the tool's name": "look\n",
    "parameters that never close": "<function=look><parameter=a>",
    "thoughts": "<think>a</think>",
    "calls in a row": "[TOOL_CALLS]look[ARGS]{",
    "NUL": "a\0",
}


def host_for(text: str, profile: str, *, streamed: bool) -> Any:
    config = {"model-profile": profile, "tool-call-format": "tags"}
    said = Reply(text, chunks=40) if streamed else text
    replies = [said, "Done."]
    model = Model("m1", replies) if streamed else Model("m1", replies, operations=INVOKED)
    return host_with(models=[model], tools=[Tool("look")], config=config)


@pytest.mark.parametrize("profile", ["standard", "auto", "small"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
async def test_Sm_no_long_text_is_gone_over_in_the_event_loop(
    unit: str, streamed: bool, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 0
    feed = StreamReader.feed

    def watched(self: StreamReader, chunk: str) -> str:
        nonlocal longest
        if threading.current_thread() is threading.main_thread():
            longest = max(longest, self.effort(chunk))
        return feed(self, chunk)

    monkeypatch.setattr(StreamReader, "feed", watched)
    host = host_for((unit * LENGTH)[:LENGTH], profile, streamed=streamed)
    run = await host.say("go")
    assert run.status in ("completed", "failed")
    assert longest <= _AT_ONCE
    await assert_sound(host, run)


async def held_for(text: str, profile: str) -> float:
    """The longest stretch, in seconds of processor time, in which no other task of the loop came to its turn."""
    longest = 0.0

    async def pulse() -> None:
        nonlocal longest
        while True:
            before = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - before)

    host = host_for(text, profile, streamed=False)
    pulsing = asyncio.create_task(pulse())
    await host.say("go")
    pulsing.cancel()
    await host.aclose()
    return longest


MACHINE = 15
"""A busy machine, the garbage collector, and the test host itself, which counts and copies the same text."""


@pytest.mark.parametrize("unit", ["\n", "<tool_call>", "look\n", "```\n", "<think>a</think>"])
@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_Sm_the_loop_is_never_held_for_long(unit: str, profile: str) -> None:
    assert await held_for((unit * LENGTH)[:LENGTH], profile) < 0.02 * MACHINE
