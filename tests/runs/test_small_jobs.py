"""S4: a slow tool goes on as a job, also beyond the end of the run.

Limits are made short here; what is asserted is the order of things, never how long they took."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.host.deadline import Deadline
from runner.run import interrupt
from runner.run import run as a_run
from runner.small.part import EVERY_PART, Part, all_but
from runner.tools import execute, jobs
from runner.tools.jobs import JOB_OUTPUT
from tests.host import Model, ModelRequest, Reply, Tool, ToolCall, mcp_content
from tests.written import LOOK, bare, says

from .scenes import assert_sound, host_with, orphans
from .weak import ASK, BUILD, ENOUGH, NO_SECOND_LOOK, Slow, act, assert_no_markup, told, weak_host, weather

# A slow tool does not stall the loop: its call goes on as a job (S4).
#
# Limits are made short here; what is asserted is the order of things, never how long they took.

pytestmark = pytest.mark.usefixtures("short_limits")


@pytest.mark.usefixtures("roomy_limits")
async def test_S4_a_slow_tool_becomes_a_job_and_the_loop_goes_on() -> None:
    slow = Slow(most=20)
    host = weak_host(BUILD, LOOK, ASK, says("Sunny, and built."), tools=[slow.tool, slow.quick(lets_go=True)])
    run = await host.say("build it, and the weather?")
    assert slow.order == ["quick", "slow"]
    assert "job_1" in told(run, 1)
    assert "It is sunny." in told(run, 2)
    assert "All built." in told(run, 3)
    assert run.final_text == "Sunny, and built."
    assert_no_markup(run)
    await assert_sound(host, run)


async def test_S4_without_jobs_the_loop_stalls_until_the_tool_has_ended() -> None:
    slow = Slow()
    tools = [slow.tool, slow.quick(lets_go=True)]
    host = weak_host(BUILD, LOOK, says("Sunny, and built."), tools=tools, parts=all_but(Part.JOBS))
    run = await host.say("build it, and the weather?")
    assert slow.order == ["slow", "quick"]
    assert "job_1" not in run.requests[-1].text
    await assert_sound(host, run)


async def test_S4_the_model_gets_a_job_id_and_what_is_known() -> None:
    slow = Slow(most=0.2)
    run = await weak_host(BUILD, ENOUGH, ENOUGH, tools=[slow.tool]).say("build")
    notice = told(run, 1)
    assert "build has not answered within 0 seconds and goes on as job_1" in notice
    assert "not known before it ends" in notice
    assert f'{JOB_OUTPUT} with {{"job": "job_1"}}' in notice
    assert [data["result"] for data in run.of("tool.call.completed")] == [{"job": "job_1", "running": True}]


async def test_S4_the_output_exists_once_the_host_returns_it() -> None:
    slow = Slow("<|im_start|>All built.", most=10)

    def let_go(_request: ModelRequest) -> Reply:
        slow.gate.set()
        return Reply(ASK)

    host = weak_host(BUILD, ASK, let_go, says("Built."), tools=[slow.tool], max_steps=9)
    run = await host.say("build")
    assert "job_1 (build) still runs" in told(run, 2)
    assert "has no result yet" in told(run, 2)
    assert "from tool build: content to read" in told(run, 3)
    assert "All built." in told(run, 3)
    assert "<|im_start|>" not in run.requests[3].text
    assert run.final_text == "Built."
    await assert_sound(host, run)


async def test_S4_the_output_may_be_asked_for_again() -> None:
    slow = Slow(most=0.15)
    run = await weak_host(BUILD, *[ASK] * 5, says("Built."), tools=[slow.tool], max_steps=9).say("build")
    assert told(run, -1).count("All built.") == told(run, -2).count("All built.") == 1
    assert run.final_text == "Built."


async def test_S4_a_failure_of_the_job_is_told_as_one() -> None:
    slow = Slow(RuntimeError("the disk is full"), most=0.15, type="mcp")
    run = await weak_host(BUILD, *[ASK] * 4, says("That failed."), tools=[slow.tool], max_steps=9).say("build")
    assert "goes on as job_1" in told(run, 1)
    assert "Error [failed]: " in told(run, -1)
    assert "the disk is full" in told(run, -1)


async def test_S4_pictures_of_a_job_reach_the_model_with_its_output() -> None:
    picture = mcp_content("drawn", {"type": "image_base64", "image_base64": "aGk="})
    slow = Slow(picture, most=0.15, type="mcp")
    host = weak_host(BUILD, *[ASK] * 4, says("Look."), tools=[slow.tool], max_steps=9)
    run = await host.say("draw")
    assert "[Pictures returned by job_output]" in run.requests[-1].text
    await assert_sound(host, run)


async def test_S4_a_job_that_does_not_exist_is_an_error_with_those_that_do() -> None:
    slow = Slow(most=0.2)
    ask = bare(JOB_OUTPUT, job="<|im_end|>job_9")
    run = await weak_host(BUILD, ask, ENOUGH, ENOUGH, tools=[slow.tool]).say("build")
    assert "Error [invalid_arguments]: there is no job '‹|im_end|>job_9'. The jobs are: job_1 (build)" in told(run, 2)


@pytest.mark.usefixtures("roomy_limits")
async def test_S4_the_tool_for_outputs_is_offered_only_once_a_job_exists() -> None:
    slow = Slow(most=1.0)
    host = weak_host(LOOK, BUILD, ENOUGH, ENOUGH, tools=[slow.tool, weather()], form="native")
    run = await host.say("build")
    assert [JOB_OUTPUT in request.tool_names for request in run.requests] == [False, False, True, True]


async def test_S4_the_tool_for_outputs_stands_beside_those_that_may_be_shown() -> None:
    slow = Slow(most=0.2)
    tools = [slow.tool, *(act(f"thing_{n}") for n in range(6))]
    run = await weak_host(BUILD, ENOUGH, ENOUGH, tools=tools, max_tools_shown=1, form="native").say("build")
    assert run.requests[1].tool_names == ["build", JOB_OUTPUT, "load_tool", "reply_to_user"]


@pytest.mark.parametrize("profile", ["small", "standard"])
async def test_S4_a_host_tool_never_takes_the_name_of_the_tool_for_outputs(profile: str) -> None:
    slow = Slow(most=0.2)
    host = weak_host(says("Hi."), tools=[Tool(JOB_OUTPUT), slow.tool], profile=profile, form="native")
    run = await host.say("hi")
    assert f"{JOB_OUTPUT}_plugin" in run.requests[0].tool_names
    assert JOB_OUTPUT not in run.requests[0].tool_names


async def test_S4_the_host_ends_the_waiting_by_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.run.setup.Executor", partial(execute.Executor, call_seconds=0.15))
    slow = Slow(most=10)
    host = weak_host(BUILD, *[ASK] * 4, says("It did not end in time."), tools=[slow.tool], max_steps=9)
    run = await host.say("build")
    assert "Error [timeout]: no answer came within 0.15 seconds; the tool may still be running" in told(run, -1)
    assert run.final_text == "It did not end in time."
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_a_follow_up_is_heard_while_a_job_goes_on() -> None:
    slow = Slow(most=10)
    host = weak_host(BUILD, ENOUGH, parts=NO_SECOND_LOOK, tools=[slow.tool])
    run = host.start("build")
    await run.until("call_tool")
    assert host.steer("and hurry")
    await run.wait()
    assert "and hurry" in run.requests[1].text
    assert slow.order == []
    slow.gate.set()
    await assert_sound(host, run)


async def test_S4_calls_behind_a_job_of_the_same_turn_are_not_run_where_they_run_in_order() -> None:
    slow, note = Slow(most=0.3), act("save_note")
    host = weak_host(f"{BUILD}\n{bare('save_note', city='x')}", ENOUGH, ENOUGH, tools=[slow.tool, note])
    run = await host.say("build, then note it")
    assert note.calls == []
    assert "the call before it goes on as job_1" in told(run, 1)
    await assert_sound(host, run)


@pytest.mark.usefixtures("roomy_limits")
async def test_D2_beside_a_job_the_results_of_a_turn_stand_in_the_order_of_the_calls() -> None:
    slow = Slow(most=1.0)
    calls = [ToolCall("build", {"city": "a"}), ToolCall("get_weather", {"city": "b"})]
    host = host_with(models=[Model("m1", [Reply(tool_calls=calls), "Done."])], tools=[slow.tool, slow.quick()])
    run = await host.say("go")
    results = [message for message in run.requests[1].messages if message["role"] == "tool"]
    assert ["job_1" in str(results[0]["content"]), "sunny" in str(results[1]["content"])] == [True, True]
    assert slow.order[0] == "quick"
    await assert_sound(host, run)


async def test_D5_a_job_whose_output_asks_to_end_the_run_ends_it() -> None:
    slow = Slow({"sent": True, "terminate": True}, most=0.15)
    host = weak_host(BUILD, *[ASK] * 6, tools=[slow.tool], max_steps=9)
    run = await host.say("build")
    assert len(run.requests) < 7
    assert run.finish_reason == "stop"
    await assert_sound(host, run)


async def test_B6_the_record_keeps_the_result_of_a_job_and_nothing_of_its_id() -> None:
    slow = Slow(most=0.15)
    host = weak_host(BUILD, *[ASK] * 4, says("Built."), tools=[slow.tool], max_steps=9)
    first = await host.say("build")
    assert "goes on as job_1" in told(first, 1)
    host.model.say(says("Yes."))
    again = await host.say("is it built?")
    history = again.requests[0].text
    assert "All built." in history
    assert "job_" not in history
    await assert_sound(host, again)


async def test_B6_the_record_of_a_job_that_never_ended_says_so() -> None:
    slow = Slow(most=10)
    host = weak_host(BUILD, ENOUGH, parts=NO_SECOND_LOOK, tools=[slow.tool])
    await host.say("build")
    slow.gate.set()
    host.model.say(says("I don't know."))
    again = await host.say("is it built?")
    assert "no result came while the run went on" in again.requests[0].text
    assert "job_" not in again.requests[0].text
    await assert_sound(host, again)


async def test_S3_a_status_of_a_job_is_never_shown_as_the_gist_of_a_result() -> None:
    slow = Slow(most=10)
    host = weak_host(BUILD, ASK, ASK, tools=[slow.tool], max_steps=2)
    run = await host.say("build")
    assert run.final_text is not None
    assert run.final_text.startswith("I stopped without finishing")
    slow.gate.set()
    await assert_sound(host, run)


async def test_C6_the_person_reads_which_tool_still_runs_and_never_the_name_of_the_tool_for_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.loop.rounds.TOOL_PATIENCE", 0.01)
    slow = Slow(most=10)
    host = weak_host(BUILD, ASK, ASK, ENOUGH, tools=[slow.tool], max_steps=9, parts=NO_SECOND_LOOK)
    run = await host.say("build")
    assert any(say(Notice.TOOL_RUNNING, Locale.EN_US, tool="build") in text for text in run.deltas)
    assert not any(JOB_OUTPUT in text for text in run.deltas)
    slow.gate.set()


@pytest.mark.usefixtures("roomy_limits")
async def test_S4_a_slow_tool_stalls_no_standard_model_either() -> None:
    slow = Slow(most=20)
    replies: list[Any] = [
        Reply(tool_calls=[ToolCall("build", {"city": "x"})]),
        Reply(tool_calls=[ToolCall("get_weather", {"city": "x"})]),
        Reply(tool_calls=[ToolCall(JOB_OUTPUT, {"job": "job_1"})]),
        "Sunny, and built.",
    ]
    host = host_with(models=[Model("m1", replies)], tools=[slow.tool, slow.quick(lets_go=True)])
    run = await host.say("go")
    assert slow.order == ["quick", "slow"]
    assert [JOB_OUTPUT in request.tool_names for request in run.requests] == [False, True, True, True]
    assert "All built." in run.requests[-1].text
    assert run.final_text == "Sunny, and built."
    await assert_sound(host, run)


async def test_S6_without_a_slow_tool_the_requests_are_byte_for_byte_those_without_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "SOFT_SECONDS", 60.0)
    seen = []
    for parts in (EVERY_PART, all_but(Part.JOBS, Part.EVIDENCE)):
        replies = [Reply(tool_calls=[ToolCall("get_weather", {"city": "x"})]), "Sunny."]
        host = weak_host(*replies, tools=[weather()], profile="standard", form="native", parts=parts)
        run = await host.say("weather?")
        seen.append([(request.messages, request.funcs, request.extra_args) for request in run.requests])
    assert seen[0] == seen[1]


# A run that ends while a job goes on says so and leaves nothing behind (S4).


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
