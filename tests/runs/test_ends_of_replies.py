"""K6: a filter of the provider ends a reply, and a reply of thoughts alone is none."""

from __future__ import annotations

import pytest

from callformats.thoughts import THOUGHTS
from config.locales import Locale
from config.notices import Notice, say
from tests.host import Model, Reason, Reply, Tool, ToolCall

from .scenes import LOOK, LOOKING, assert_sound, host_with, rows, words

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
