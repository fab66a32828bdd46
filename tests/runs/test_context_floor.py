"""What cannot be cut is above the budget: one clear sentence, no model asked, nothing tried twice (F7, C8)."""

from __future__ import annotations

import re
from random import Random

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import Model, ModelRequest, RunRecord, TestHost, Tool

from .long_chats import assert_within, budget_of, chats, chatter, model_that, prose, stored, summaries, window
from .scenes import assert_sound, counted, host_with, rows

SETTING = "context-window-tokens"


def scene(prompt: str = "Be kind.", **given: object) -> TestHost:
    """A window of 2,000, a chat of about 1,500 tokens before, and a second model."""
    models = [Model(name, default=model_that("Here.")) for name in ("m1", "m2")]
    settings = window(2_000, date_grounding=False, prompt=[{"role": "system", "content": prompt}])
    host = host_with(models=models, config=settings, **given)
    chatter(host, Random(1), 10, 90)
    return host


def large_tools() -> list[Tool]:
    properties = {f"field_{n}": {"type": "string", "description": prose(Random(n), 30)} for n in range(60)}
    return [Tool("look", parameters={"type": "object", "properties": properties})]


async def assert_ended_once(host: TestHost, run: RunRecord, notice: Notice, part: str) -> None:
    """The person reads the sentence, the owner finds part, setting and numbers; no model was asked for anything."""
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.final_text == say(notice, Locale.EN_US)
    assert run.requests == []
    counts = 3 if part == "pictures" else 2  # what pictures cost is asked once (L7)
    assert run.calls.count("count_tokens") <= counts
    assert counted(run) <= 6
    (line,) = [line for line in run.logs if "runner.input_too_large" in line]
    assert part in line and SETTING in line
    needed, left = map(int, re.findall(r"(\d+) tokens and the input budget leaves it (\d+)", line)[0])
    assert needed > left
    assert left <= budget_of(2_000)
    assert rows(host)[-1] == ("assistant", run.final_text)
    assert sum("context:" in line for line in run.logs) <= 1
    await assert_sound(host, run)


async def test_F7_a_prompt_above_the_budget_is_named_with_its_setting() -> None:
    host = scene(prompt=prose(Random(2), 1_600))
    run = await host.say("And now?")
    await assert_ended_once(host, run, Notice.PROMPT_TOO_LARGE, "system prompt")


async def test_F7_tools_above_the_budget_are_named_with_the_setting() -> None:
    host = scene(tools=large_tools())
    run = await host.say("And now?")
    await assert_ended_once(host, run, Notice.TOOLS_TOO_LARGE, "list of tools")


async def test_L7_pictures_above_the_budget_are_named() -> None:
    host = scene()
    run = await host.say("What is on these?", images=["aGk="] * 12)
    await assert_ended_once(host, run, Notice.PICTURES_TOO_LARGE, "pictures")


async def test_F3_a_message_above_the_budget_is_cut_visibly_head_and_tail_and_answered() -> None:
    host = scene()
    text = f"KEY-100-1 is how it begins. {prose(Random(3), 6_000)} And KEY-100-2 is how it ends."
    run = await host.say(text)
    assert run.final_text == "Here."
    (request,) = [request for request in run.requests if request.model == "m1" and request not in summaries(run)]
    assert request.tokens <= budget_of(2_000)
    assert request.violations() == []
    assert "KEY-100-1" in request.last_user and "KEY-100-2" in request.last_user
    assert "characters" in request.last_user
    await assert_sound(host, run)


async def test_F7_the_same_prompt_with_a_larger_window_is_answered() -> None:
    host = scene(prompt=prose(Random(2), 1_600))
    await host.say("And now?")
    host.config[SETTING] = 8_000
    run = await host.say("And now?")
    assert run.final_text == "Here."
    assert_within(run, budget_of(8_000))


async def test_F7_every_run_of_such_a_chat_ends_the_same_way_and_remembers_nothing_wrong() -> None:
    host = scene(prompt=prose(Random(2), 1_600))
    runs = [await host.say(f"Turn {turn}") for turn in range(4)]
    assert len({run.final_text for run in runs}) == 1
    assert [counted(run) for run in runs] == [counted(runs[0])] * 4
    assert all(run.requests == [] for run in runs)
    assert stored(host) is None


@pytest.mark.parametrize("factor", [8, 40])
async def test_F7_a_host_that_counts_far_more_than_any_plan_ends_in_one_sentence(factor: int) -> None:
    """Every message counts many times what any tokenizer says: no cut can ever suffice."""
    host = scene()

    async def count(data: dict[str, object]) -> dict[str, object]:
        return {"tokens": factor * len(str(data["messages"]))}

    host.answer_with("count_tokens", count)
    run = await host.say("And now?")
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.calls.count("count_tokens") <= 5
    assert len(summaries(run)) <= 1
    assert [request for request in run.requests if request not in summaries(run)] == []
    await assert_sound(host, run)


@pytest.mark.parametrize(("factor", "window_tokens"), [(0.3, 4_000), (3.0, 16_000)])
async def test_F2_a_host_that_counts_otherwise_than_we_plan_gets_requests_that_fit_by_its_own_count(
    factor: float, window_tokens: int
) -> None:
    host = host_with(
        models=[Model("m1", default=model_that("Here."))], config=window(window_tokens, date_grounding=False)
    )
    counts: dict[int, int] = {}

    async def count(data: dict[str, object]) -> dict[str, object]:
        tokens = max(1, int(len(str(data["messages"])) / 4 * factor))
        messages = data["messages"]
        assert isinstance(messages, list)
        counts[len(messages)] = tokens
        return {"tokens": tokens}

    host.answer_with("count_tokens", count)
    chatter(host, Random(1), 60, 150)
    for turn in range(6):
        run = await host.say(f"Turn {turn}. {prose(Random(turn), 60)}")
        assert run.final_text == "Here."
        asked: ModelRequest = chats(run)[-1]
        assert counts[len(asked.messages)] <= budget_of(window_tokens)
        assert run.calls.count("count_tokens") <= 4
