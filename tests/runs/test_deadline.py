"""A run ends by itself before its limit does it for it (G3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.host.deadline import Deadline
from runner.run import run as a_run
from tests.host import Model, ModelRequest, Reply, Tool

from .scenes import LOOK, LOOKING, assert_sound, host_with, rows

LIMIT = say(Notice.TIME_LIMIT, Locale.EN_US)
NOTE = say(Notice.TIME_LIMIT_NOTE, Locale.EN_US)
SetLimits = Callable[[float | None, float | None], None]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> SetLimits:
    """Sets wrap-up and end of the runs that follow, in seconds from their start."""

    def set_them(wrap_up: float | None, end: float | None) -> None:
        def deadline_for(now: float, _timeout: float | None, _host_left: float | None) -> Deadline:
            return Deadline(None if wrap_up is None else now + wrap_up, None if end is None else now + end)

        monkeypatch.setattr(a_run, "deadline_for", deadline_for)

    return set_them


def concluding(request: ModelRequest) -> bool:
    return request.extra_args.get("tool_choice") == "none"


def restless(request: ModelRequest) -> Reply:
    """Looks for ever unless it is told to conclude."""
    return Reply("So far: nothing.") if concluding(request) else LOOKING


async def test_G3_from_the_wrap_up_on_no_tool_round_starts_and_the_model_concludes(limits: SetLimits) -> None:
    limits(0.3, 20)
    tool = Tool("look", delay=0.05)
    host = host_with(models=[Model("m1", default=restless)], tools=[tool])
    run = await host.say("go")
    assert run.finish_reason == "stop"
    assert run.final_text is not None
    assert run.final_text.endswith("So far: nothing.")
    assert [concluding(request) for request in run.requests] == [False] * (len(run.requests) - 1) + [True]
    assert len(tool.calls) >= 1
    await assert_sound(host, run)


async def test_G3_a_tool_that_is_still_at_work_at_the_wrap_up_gets_a_result_and_the_model_concludes(
    limits: SetLimits,
) -> None:
    limits(0.2, 20)
    gate = asyncio.Event()
    host = host_with(models=[Model("m1", default=restless)], tools=[Tool("look", fn=gate.wait)])
    run = await host.say("go")
    assert len(run.requests) == 2
    results = [message["content"] for message in run.requests[-1].messages if message["role"] == "tool"]
    assert len(results) == 1
    assert "Error [timeout]" in results[0]
    assert run.final_text == "Looking.\n\nSo far: nothing."
    gate.set()
    await assert_sound(host, run)


async def test_K10_near_the_end_too_a_conclusion_that_only_calls_is_asked_for_without_tools(limits: SetLimits) -> None:
    limits(0.2, 20)
    silent = Model("m1", default=lambda request: LOOK if request.funcs else Reply("So far: nothing."))
    host = host_with(models=[silent], tools=[Tool("look", delay=0.25)])
    run = await host.say("go")
    assert run.final_text == "So far: nothing."
    assert [bool(request.funcs) for request in run.requests] == [True, True, False]
    await assert_sound(host, run)


@pytest.mark.parametrize("before", [LOOK, LOOKING])
async def test_K10_where_nothing_came_of_it_the_note_names_the_time_not_the_rounds(
    limits: SetLimits, before: Reply
) -> None:
    limits(0.2, 20)
    host = host_with(models=[Model("m1", replies=[before], default=LOOK)], tools=[Tool("look", delay=0.25)])
    run = await host.say("go")
    assert run.final_text == (f"Looking.\n\n{say(Notice.NO_TIME_NOTE, Locale.EN_US)}" if before.text else LIMIT)
    assert len(run.requests) == 3
    await assert_sound(host, run)


async def test_G3_a_second_conclusion_ends_with_the_run_too(limits: SetLimits) -> None:
    limits(0.2, 0.6)
    slow = Model("m1", default=lambda request: LOOK if request.funcs else Reply("too late", delay=60))
    host = host_with(models=[slow], tools=[Tool("look", delay=0.25)])
    run = await host.say("go")
    assert (run.final_text, run.finish_reason) == (LIMIT, "error")
    await assert_sound(host, run)


async def test_G3_at_the_end_the_person_gets_what_there_is_and_a_note(limits: SetLimits) -> None:
    limits(0.1, 0.4)
    host = host_with(replies=[Reply(chunks=["Half a ", "sentence"], chunk_delay=60)])
    run = await host.say("go")
    assert run.final_text == f"Half a \n\n{NOTE}"
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert rows(host)[-1] == ("assistant", run.final_text)
    assert host.model.aborted == 1
    await assert_sound(host, run)


async def test_G3_with_nothing_to_show_the_person_reads_that_the_time_was_up(limits: SetLimits) -> None:
    limits(0.1, 0.3)
    host = host_with(replies=[Reply("late", delay=60)])
    run = await host.say("go")
    assert run.final_text == LIMIT
    assert (run.status, run.finish_reason) == ("completed", "error")
    assert run.usage is None or run.usage["prompt_tokens"] >= 0
    await assert_sound(host, run)


async def test_G3_a_conclusion_that_misses_the_end_too_leaves_what_was_said_with_a_note(limits: SetLimits) -> None:
    limits(0.2, 0.6)

    def slow(request: ModelRequest) -> Reply:
        return Reply("too late", delay=60) if concluding(request) else LOOKING

    host = host_with(models=[Model("m1", default=slow)], tools=[Tool("look", delay=0.25)])
    run = await host.say("go")
    assert run.final_text == f"Looking.\n\n{NOTE}"
    assert run.finish_reason == "error"
    assert run.usage is not None
    await assert_sound(host, run)


@pytest.mark.parametrize(("words", "locale"), [("请看一下", Locale.ZH_HANS), ("посмотри, пожалуйста", Locale.RU_RU)])
async def test_G3_the_note_is_in_the_language_of_the_chat(limits: SetLimits, words: str, locale: Locale) -> None:
    limits(0.1, 0.3)
    host = host_with(replies=[Reply("late", delay=60)])
    run = await host.say(words)
    assert run.final_text == say(Notice.TIME_LIMIT, locale)


async def test_G3_our_own_end_comes_before_the_hosts() -> None:
    host = host_with(replies=[Reply("late", delay=60)], config={"timeout": 3})
    run = await host.say("go")
    assert (run.status, run.code, run.final_text) == ("completed", None, LIMIT)
    await assert_sound(host, run)


async def test_G3_without_any_deadline_a_long_wait_is_no_failure_and_the_run_answers() -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.3)], config={"timeout": 0})
    run = await host.say("go")
    assert run.ctx["runtime"]["deadline_at"] is None
    assert run.final_text == "Hello."
    await assert_sound(host, run)


async def test_G3_a_follow_up_near_the_end_is_still_answered(limits: SetLimits) -> None:
    limits(0.2, 20)
    host = host_with(models=[Model("m1", default=restless)])
    said: list[bool] = []

    async def look() -> str:
        await asyncio.sleep(0.25)
        if not said:
            said.append(host.steer("hurry up"))
        return "found"

    host.world.tools.append(Tool("look", fn=look))
    run = await host.say("go")
    assert run.final_text is not None
    assert run.final_text.endswith("So far: nothing.")
    await assert_sound(host, run) if said else None
