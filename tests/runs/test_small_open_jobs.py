"""A run that ends while a job goes on says so and leaves nothing behind (S4)."""

from __future__ import annotations

import asyncio

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.host.deadline import Deadline
from runner.run import interrupt
from runner.run import run as a_run
from runner.small.part import EVERY_PART, Part, all_but
from runner.tools import jobs
from runner.tools.jobs import JOB_OUTPUT
from tests.host import Model, ModelRequest, Reply, ToolCall
from tests.written import says

from .scenes import assert_sound, host_with, orphans
from .slow import ASK, BUILD, ENOUGH, NO_SECOND_LOOK, Slow, told
from .weak import weak_host

pytestmark = pytest.mark.usefixtures("short_limits")


@pytest.mark.parametrize("locale", list(Locale))
async def test_S4_the_run_says_at_its_end_what_is_still_open_in_the_language_of_the_chat(locale: Locale) -> None:
    slow = Slow(most=10)
    host = weak_host(BUILD, ENOUGH, tools=[slow.tool], notice_language=locale.value, parts=NO_SECOND_LOOK)
    run = await host.say("build")
    assert run.final_text == f"It goes on.\n\n{say(Notice.OPEN_JOBS_NOTE, locale, tools='build')}"
    assert any("job_1: build is no longer waited for" in line for line in run.logs)
    assert slow.order == []
    assert run.calls.still_open == []
    assert await orphans(host) == []
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_without_jobs_nobody_hears_that_a_tool_may_still_be_running(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for parts in (EVERY_PART, all_but(Part.JOBS)):
        monkeypatch.setattr(a_run, "deadline_for", lambda now, *_: Deadline(now + 1.5, now + 9))
        slow = Slow(most=20)
        host = weak_host(BUILD, *[ENOUGH] * 2, tools=[slow.tool], parts=parts)
        texts.append((await host.say("build")).final_text)
        slow.gate.set()
    note = say(Notice.OPEN_JOBS_NOTE, Locale.EN_US, tools="build")
    assert texts == [f"It goes on.\n\n{note}", "It goes on."]


async def test_S4_what_has_ended_is_not_named_at_the_end() -> None:
    slow = Slow(most=0.15)
    run = await weak_host(BUILD, *[ASK] * 4, says("Built."), tools=[slow.tool], max_steps=9).say("build")
    assert run.final_text == "Built."
    assert not any("job_1" in line for line in run.logs)


async def test_S4_an_answer_without_the_result_of_a_job_goes_back_once_then_stands() -> None:
    slow = Slow(most=10)
    host = weak_host(BUILD, ENOUGH, ENOUGH, tools=[slow.tool])
    run = await host.say("build")
    assert "build goes on as job_1, and you have not seen its result" in told(run, 2)
    assert len(run.requests) == 3
    assert run.final_text is not None
    assert run.final_text.startswith("It goes on.\n\n[No longer waited for")
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_the_deadline_ends_a_run_with_a_job_in_time_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a_run, "deadline_for", lambda now, *_: Deadline(now + 1.5, now + 9))
    slow = Slow(most=20)

    def waits(request: ModelRequest) -> Reply:
        concludes = "Time is nearly up" in request.text or "no more tools can be used" in request.text
        return Reply(says("It did not end.") if concludes else ASK)

    host = weak_host(BUILD, *[waits] * 90, tools=[slow.tool], max_steps=90, parts=all_but(Part.LOOP_BREAKER))
    run = await host.say("build")
    assert run.final_text is not None
    assert run.final_text.startswith("It did not end.\n\n[No longer waited for")
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_a_run_whose_time_is_up_names_its_jobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a_run, "deadline_for", lambda now, *_: Deadline(now + 9, now + 1.5))
    slow = Slow(most=20)
    host = weak_host(BUILD, Reply("late", delay=20), tools=[slow.tool])
    run = await host.say("build")
    assert run.finish_reason == "error"
    assert run.final_text is not None
    assert run.final_text.endswith(say(Notice.OPEN_JOBS_NOTE, Locale.EN_US, tools="build"))
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_a_stop_reaches_a_run_with_a_job_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    slow = Slow(most=20)
    host = host_with(
        models=[Model("m1", [Reply("Building.", tool_calls=[ToolCall("build", {"city": "x"})]), Reply("l", delay=60)])],
        tools=[slow.tool],
    )
    run = host.start("go")
    await run.until("invoke_llm_stream", 2)
    before = run.calls.count("run_get")
    host.cancel(run)
    async with asyncio.timeout(10):
        await run.wait()
    assert run.status == "cancelled"
    assert run.calls.count("run_get") - before <= 2
    assert run.answer is not None
    assert run.answer.startswith("Building.")
    assert "possibly still running: build" in run.answer
    assert await orphans(host) == []
    assert run.calls.still_open == []
    slow.gate.set()


async def test_S4_a_stop_reaches_a_run_that_waits_for_the_output_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    slow = Slow(most=20)
    ask = Reply(tool_calls=[ToolCall(JOB_OUTPUT, {"job": "job_1"})])

    def patient(_request: ModelRequest) -> Reply:
        monkeypatch.setattr(jobs, "SOFT_SECONDS", 60)
        return ask

    first = Reply(tool_calls=[ToolCall("build", {"city": "x"})])
    host = host_with(models=[Model("m1", [first, patient])], tools=[slow.tool])
    run = host.start("go")
    await run.until_result("tool.call.started", 2)
    host.cancel(run)
    async with asyncio.timeout(10):
        await run.wait()
    assert run.status == "cancelled"
    assert await orphans(host) == []
    slow.gate.set()
