"""S3-S5: steps of tools, their limits, corrections and circles, and slow calls that go on as jobs."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from runner.loop.loop_detection import Seen
from runner.loop.turn import Turns
from runner.models.reply import ReplyReader
from runner.run import run as runs
from runner.small import call_log as trail
from runner.small import escalation as ladder
from runner.small.escalation import Ladder
from runner.small.guiding import Guiding
from runner.small.part import Part, Parts
from runner.tools import catalogue, jobs
from runner.tools.jobs import JOB_OUTPUT
from tests.host import Reply, Tool
from tests.written import LOOK, bare, says

from .table import CIRCLES, SAVE, Change, act, fails, look, play, shows, stage

# S3: steps of tools, their limits, corrections and circles.

BAD = bare("get_weather")
STOPPED = f"{CIRCLES} without getting further, so I stopped here."
EXAMPLE = bare("get_weather", city="the city")


def looks_at(*cities: str) -> list[str]:
    return [bare("get_weather", city=city) for city in cities]


# One step


async def test_S3_calls_run_one_at_a_time_whatever_the_binding_says() -> None:
    async def scenario(parts: Parts) -> object:
        tool = look(delay=0.01)
        both = "\n".join(looks_at("Oslo", "Rome"))
        await play(parts, both, says("ok"), tools=[tool], tool_execution_mode="parallel")
        return len(tool.calls), tool.most_at_once

    await shows(Part.ONE_BY_ONE, scenario, wanted=(2, 1), without=(2, 2))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest limit of the form is five seconds; here it is one."""
    seconds = Guiding.step_seconds
    monkeypatch.setattr(Guiding, "step_seconds", lambda self, model: (limit := seconds(self, model)) and limit / 5)


async def test_S3_a_step_has_a_limit_of_its_own_that_ends_with_a_plain_sentence(quick: None) -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, Reply(says("late"), delay=1.6), step_timeout=5)
        return str(run.final_text)[:28], run.calls.count("invoke_llm_stream")

    await shows(Part.STEP_LIMIT, scenario, wanted=("The model took too long (lim", 1), without=("late", 1))


async def test_S3_the_limit_of_a_step_begins_anew_at_the_first_token(quick: None) -> None:
    async def scenario(parts: Parts) -> object:
        slow = Reply(LOOK, chunks=2, delay=0.7, chunk_delay=0.35)
        return str((await play(parts, slow, says("Sunny."), step_timeout=5)).final_text)[:24]

    deaf = Change(ReplyReader, "feed", _without_begin(ReplyReader.feed))
    await shows(deaf, scenario, wanted="Sunny.", without="The model took too long ")


def _without_begin(feed: Any) -> Any:
    def deaf(self: Any, chunk: Any) -> str:
        self.on_begin = None
        return str(feed(self, chunk))

    return deaf


async def test_S3_a_generation_is_raced_against_a_wish_to_stop() -> None:
    async def scenario(parts: Parts) -> object:
        host = stage(parts, Reply(says("late"), delay=2.5), tools=[look()])
        run = host.start("weather?")
        await run.until("invoke_llm_stream")
        host.cancel()
        await run.wait()
        return host.model.aborted

    async def unwatched(*_: Any) -> None:
        await asyncio.Event().wait()

    await shows(Change(runs, "watch", unwatched), scenario, wanted=1, without=0)


async def test_S3_at_max_steps_the_run_ends_with_the_gist_and_a_plain_statement() -> None:
    async def scenario(parts: Parts) -> object:
        tool = look(lambda values: f"Sunny in {values['city']}.")
        run = await play(parts, *looks_at("A", "B", "C", "D"), says("Done."), tools=[tool], max_steps=2)
        return len(tool.calls), run.final_text

    wanted = (2, "Sunny in B.\n\nI stopped without finishing (steps used: 2).")
    await shows(Part.MAX_STEPS, scenario, wanted=wanted, without=(4, "Done."))


# The ladder


async def slipped(parts: Parts, count: int, *then: str) -> Any:
    return await play(parts, *[BAD] * count, *then, tools=[look(), act("notes_tool")])


async def test_S3_the_first_slip_is_answered_with_a_concrete_valid_example() -> None:
    async def scenario(parts: Parts) -> object:
        last = (await slipped(parts, 1, says("ok"))).requests[1].last_user
        return EXAMPLE in last, "Error: " in last, "Try again" in last

    await shows(Part.LADDER, scenario, wanted=(True, True, True), without=(False, False, False))


async def test_S3_the_second_slip_diverts_to_other_tools_with_another_sampling() -> None:
    async def scenario(parts: Parts) -> object:
        request = (await slipped(parts, 2, says("ok"))).requests[2]
        return "use notes_tool instead" in request.last_user, request.extra_args.get("temperature")

    await shows(Part.LADDER, scenario, wanted=(True, 1.0), without=(False, None))


async def test_S3_the_third_slip_switches_the_tool_off_and_says_so_openly() -> None:
    async def scenario(parts: Parts) -> object:
        run = await slipped(parts, 3, says("ok"))
        off = "get_weather kept being called wrongly" in str(run.final_text)
        return off, '"name": "get_weather"' in run.requests[3].system

    await shows(Part.LADDER, scenario, wanted=(True, False), without=(False, True))


async def test_S3_the_fifth_slip_stops_the_run_with_a_reason() -> None:
    async def scenario(parts: Parts) -> object:
        run = await slipped(parts, 6, says("It failed."))
        return len(run.requests), CIRCLES in str(run.final_text)

    await shows(Part.LADDER, scenario, wanted=(5, True), without=(7, False))


async def test_S3_a_valid_call_sets_the_ladder_back() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BAD, BAD, *looks_at("A"), BAD, BAD, *looks_at("B"), says("ok"))
        return run.final_text, run.calls.count("call_tool")

    unforgiving = Change(Ladder, "valid", lambda *_: None)
    off = "[get_weather kept being called wrongly, so I am going on without it.]"
    await shows(unforgiving, scenario, wanted=("ok", 2), without=(f"{off}\n\n{STOPPED}", 1))


async def test_S3_a_second_bad_reply_does_not_end_the_run() -> None:
    async def scenario(parts: Parts) -> object:
        run = await slipped(parts, 2, LOOK, says("Sunny."))
        return run.final_text

    strict = Change(ladder, "MOST_SLIPS", 2)
    await shows(strict, scenario, wanted="Sunny.", without=STOPPED)


@pytest.mark.parametrize(
    ("bad", "trace"),
    [(BAD, '"arguments": {}'), ('{"name": "get_weather", "arguments": {"city": "Osl', "Osl"), (bare("sing"), "sing")],
    ids=["what is required lacks", "cut off in a string", "an unknown tool"],
)
async def test_S3_bad_calls_are_never_run_and_never_enter_the_history(bad: str, trace: str) -> None:
    async def scenario(parts: Parts) -> object:
        tool = look()
        run = await play(parts, bad, LOOK, says("Sunny."), tools=[tool], form="json")
        said = [str(one["content"]) for each in run.requests for one in each.messages if one["role"] == "assistant"]
        return len(tool.calls), any(trace in text for text in said if "Oslo" not in text), len(run.requests)

    # Without the ladder words that are no call are an answer; what can be read is answered in the history.
    without = (0, False, 1) if trace != '"arguments": {}' else (1, True, 3)
    await shows(Part.LADDER, scenario, wanted=(1, False, 3), without=without)


async def test_S3_no_two_corrections_in_a_row_are_equal() -> None:
    async def scenario(parts: Parts) -> object:
        half = [f"{good}\n{BAD}" for good in looks_at("A", "B", "C")]
        run = await play(parts, *half, says("ok"))
        told = [request.last_user.split("Error: ")[-1] for request in run.requests[1:]]
        return len(told), any(one == other for one, other in itertools.pairwise(told))

    chanting = Change(Ladder, "unlike_before", lambda _, text: text)
    await shows(chanting, scenario, wanted=(3, False), without=(3, True))


# Circles


async def test_S3_the_same_call_with_the_same_result_is_flagged_once_then_stops() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, *[SAVE] * 5, says("ok"), tools=[act()], max_steps=9)
        flags = sum("same result as before" in request.last_user for request in run.requests)
        return run.calls.count("call_tool"), flags, CIRCLES in str(run.final_text)

    await shows(Part.LOOP_BREAKER, scenario, wanted=(3, 1, True), without=(5, 0, False))


async def test_S3_who_is_stopped_in_circles_still_reads_what_the_last_call_brought() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, *[SAVE] * 5, says("ok"), tools=[act(result=lambda _: "note 12 is saved")], max_steps=9)
        return run.final_text

    await shows(Part.LOOP_BREAKER, scenario, wanted=f"note 12 is saved\n\n{STOPPED}", without="ok")


async def test_S3_cycles_up_to_five_calls_are_seen() -> None:
    async def scenario(parts: Parts) -> object:
        calls = [bare("save_note", city=str(n % 5)) for n in range(14)]
        run = await play(parts, *calls, says("ok"), tools=[act()], max_steps=20)
        return run.calls.count("call_tool"), CIRCLES in str(run.final_text)

    await shows(Part.LOOP_BREAKER, scenario, wanted=(11, True), without=(14, False))


async def test_S3_an_action_may_repeat_while_its_result_changes() -> None:
    async def scenario(parts: Parts) -> object:
        pages = itertools.count()
        run = await play(parts, *[SAVE] * 5, says("ok"), tools=[act(result=lambda _: f"page {next(pages)}")])
        return run.calls.count("call_tool"), run.final_text

    await shows(Change(trail, "Seen", _blind(Seen)), scenario, wanted=(5, "ok"), without=(3, f"page 2\n\n{STOPPED}"))


def _blind(seen: type[Seen]) -> Any:
    """Judges calls by what was asked alone."""

    class Blind:
        @staticmethod
        def of(name: str, arguments: str, _result: str, *, failed: bool, reads: bool) -> Any:
            return seen.of(name, arguments, "", failed=failed, reads=reads)

    return Blind


async def test_S3_a_failing_action_is_in_a_circle_whatever_its_failures_say() -> None:
    async def scenario(parts: Parts) -> object:
        tries = itertools.count()
        tool = fails(why=lambda: f"busy, try {next(tries)}")
        run = await play(parts, *[SAVE] * 4, says("It failed."), tools=[tool])
        return run.calls.count("call_tool"), CIRCLES in str(run.final_text)

    await shows(Part.LOOP_BREAKER, scenario, wanted=(3, True), without=(4, False))


@pytest.mark.parametrize("name", ["get_page", "list_pages", "read_page", "search_pages"])
async def test_S3_reads_are_exempt_from_the_loop_breaker(name: str) -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, *[bare(name, city="x")] * 4, says("ok"), tools=[act(name)])
        return run.calls.count("call_tool")

    await shows(Change(catalogue, "_reads", lambda *_: False), scenario, wanted=4, without=3)


async def test_S3_reads_are_stopped_after_eight_identical_results() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, *[LOOK] * 10, says("ok"), max_steps=20)
        return run.calls.count("call_tool"), CIRCLES in str(run.final_text)

    await shows(Part.LOOP_BREAKER, scenario, wanted=(8, True), without=(10, False))


async def test_S3_text_that_chants_is_stopped() -> None:
    async def scenario(parts: Parts) -> object:
        chant = Reply("I will do it now. " * 200, chunks=60)
        host = stage(parts, chant, chant, tools=[look()])
        run = await host.say("weather?")
        return host.model.aborted, str(run.final_text).count("I will do it now.")

    await shows(Part.CHANT_BREAKER, scenario, wanted=(2, 0), without=(0, 200))


async def test_S3_a_reply_of_white_space_without_end_is_stopped() -> None:
    async def scenario(parts: Parts) -> object:
        blanks = "".join(random.Random(1).choices(" \n\t", k=3_000))
        host = stage(parts, Reply(LOOK + blanks, chunks=200), says("ok"), tools=[look()])
        run = await host.say("weather?")
        return host.model.aborted, run.final_text

    await shows(Part.CHANT_BREAKER, scenario, wanted=(1, "ok"), without=(0, "ok"))


async def test_S3_the_person_is_told_why_a_run_stopped() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, *[SAVE] * 4, tools=[act()], notice_language="zh_Hans")
        return "重复" in str(run.final_text)

    await shows(Change(Turns, "note", lambda *_: None), scenario, wanted=True, without=False)


async def test_S3_the_runners_sentences_have_their_shapes_in_the_language_of_the_chat() -> None:
    """Too long and took too long have scenarios of their own; a failure names its reason."""

    async def scenario(parts: Parts) -> object:
        lost = Reply(error="rate limit or insufficient balance")
        host = stage(parts, lost, tools=[look()], host={"mode": "agent"}, notice_language="en_US")
        await host.say("Hello?")
        return [text.split(".")[0] for text in host.world.platform.replies]

    silent = Change(runs, "hint", lambda *_: "")
    await shows(silent, scenario, wanted=["No model could answer: rate_limit"], without=[])


# S4 and S5: slow calls go on as jobs, new errors ride along. More in tests/runs/test_small_{jobs,evidence}.py.

BUILD = bare("build", city="x")
ASK = bare(JOB_OUTPUT, job="job_1")


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SMALL_SOFT_SECONDS", 0.4)


def slow(seconds: float = 0.6) -> Tool:
    return act("build", "all is built", delay=seconds)


@pytest.mark.usefixtures("short_limit")
async def test_S4_a_call_past_the_limit_goes_on_as_a_job_with_an_id_and_what_is_known() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, *[says("ok")] * 2, tools=[slow()])
        told = run.requests[1].text
        return "job_1" in told, "all is built" in told

    await shows(Part.JOBS, scenario, wanted=(True, False), without=(False, True))


@pytest.mark.usefixtures("short_limit")
async def test_S4_its_output_can_be_asked_for_once_there_is_a_job_and_exists_once_the_host_returns_it() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, ASK, says("ok"), tools=[slow()])
        requests = run.requests[:3]
        offered = [JOB_OUTPUT in request.system for request in requests]
        return offered, ["all is built" in request.text for request in requests]

    wanted, without = ([False, True, True], [False, False, True]), ([False] * 3, [False, True, True])
    await shows(Part.JOBS, scenario, wanted=wanted, without=without)


@pytest.mark.usefixtures("short_limit")
async def test_S4_the_end_says_what_is_given_up_and_may_still_run() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, *[says("It goes on.")] * 3, tools=[slow(2.0)])
        return "build" in str(run.final_text), "all is built" in run.requests[-1].text

    await shows(Part.JOBS, scenario, wanted=(True, False), without=(False, True))


@pytest.mark.usefixtures("short_limit")
async def test_S5_new_errors_of_a_console_ride_along_with_an_action() -> None:
    console = Tool("browser_console_messages", result="[error] button is undefined")
    click = act("browser_click", "clicked")
    go = Tool("browser_navigate", result="opened", parameters={"type": "object", "properties": {"url": {}}})

    async def scenario(parts: Parts) -> object:
        replies = [bare("browser_navigate", url="http://localhost:8000/"), bare("browser_click", city="x")]
        run = await play(parts, *replies, *[says("ok")] * 2, tools=[console, click, go])
        return "button is undefined" in run.requests[2].text

    await shows(Part.EVIDENCE, scenario, wanted=True, without=False)
