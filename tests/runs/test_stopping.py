"""G2, G3: a run ends by itself before its limit, and the Host's stop flag reaches whatever it waits for.

Times are counted in polls, one a second in use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.host.deadline import Deadline
from runner.host.port import Host
from runner.run import interrupt
from runner.run import run as a_run
from tests.host import Fault, Model, ModelRequest, Reply, RunRecord, TestHost, Tool, ToolCall

from .scenes import LOOK, LOOKING, assert_sound, host_with, orphans, rows

# A run ends by itself before its limit does it for it (G3).

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


async def test_N4_the_line_of_a_run_that_its_limit_ended_says_so_and_no_line_names_a_limit_that_is_none() -> None:
    run = await host_with(replies=[Reply("late", delay=60)], config={"timeout": 3}).say("go")
    assert [line for line in run.logs if line.startswith("run: out of time in ")]
    assert not [line for line in run.logs if "using 5" in line]


async def test_N4_a_conclusion_without_words_because_of_the_time_is_out_of_time(limits: SetLimits) -> None:
    limits(0.2, 20)
    host = host_with(models=[Model("m1", [LOOKING], default=Reply(""))], tools=[Tool("look", delay=0.5)])
    run = await host.say("go")
    assert [line for line in run.logs if line.startswith("run: out of time in ")]


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


# The Host's stop flag reaches whatever a run waits for (G2). Times are counted in polls, one a second in use.

Wait = Callable[[RunRecord], Awaitable[object]]


class Polls:
    """How many polls may still go out: few, so that none is under way when a run ends by itself."""

    left = 6

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Polls()
    ask, poll = RunRecord.request_cancel, interrupt._asked_to_stop

    def request_cancel(run: RunRecord, reason: str | None = None) -> None:
        made.left = 1_000
        ask(run, reason)

    async def asked_to_stop(host: Host) -> bool:
        return made.take() and await poll(host)

    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: 0.0)
    monkeypatch.setattr(interrupt, "_asked_to_stop", asked_to_stop)
    monkeypatch.setattr(RunRecord, "request_cancel", request_cancel)


async def stopped(host: TestHost, waits: Wait, text: str = "go") -> tuple[RunRecord, int]:
    """Starts a run, sets its flag once `waits` holds; the run, and how many polls it took to stop from then on."""
    run = host.start(text)
    await waits(run)
    before = run.calls.count("run_get")
    host.cancel(run)
    async with asyncio.timeout(10):
        await run.wait()
    return run, run.calls.count("run_get") - before


def forever(started: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def never() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    return never


async def assert_stopped(host: TestHost, run: RunRecord, polls: int) -> None:
    assert run.status == "cancelled"
    assert polls <= 2
    assert run.notice is None
    assert await orphans(host) == []
    assert run.calls.still_open == []


@pytest.mark.usefixtures("polls")
async def test_G2_a_model_that_says_nothing_is_left_and_its_stream_closed() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    run, polls = await stopped(host, lambda run: run.until("invoke_llm_stream"))
    await assert_stopped(host, run, polls)
    assert host.model.aborted == 1
    assert run.completed == []
    assert run.cards == []
    assert rows(host) == [("user", "go")]


@pytest.mark.usefixtures("polls")
async def test_G2_what_a_stream_has_shown_stays_on_the_card() -> None:
    host = host_with(replies=[Reply(chunks=["Once ", "upon ", "a time"], chunk_delay=60)])
    run, polls = await stopped(host, lambda run: run.until_result("message.delta"))
    await assert_stopped(host, run, polls)
    assert run.answer is not None
    assert run.answer.startswith("Once ")


@pytest.mark.usefixtures("polls")
@pytest.mark.parametrize("count", [1, 8])
async def test_G2_waiting_tools_are_left_and_what_was_said_before_them_stays(count: int) -> None:
    calls = [ToolCall("look", id=f"c{n}") for n in range(count)]
    host = host_with(replies=[Reply("Looking.", tool_calls=calls)], tools=[Tool("look", fn=forever(asyncio.Event()))])
    run, polls = await stopped(host, lambda run: run.until_result("tool.call.started", count))
    await assert_stopped(host, run, polls)
    assert run.answer is not None
    assert run.answer.startswith("Looking.")


@pytest.mark.usefixtures("polls")
@pytest.mark.parametrize("action", ["count_tokens", "history_page", "get_prompt", "steering_pull"])
async def test_G2_a_run_that_waits_for_any_answer_of_the_host_is_stopped(action: str) -> None:
    host = host_with(replies=["Hello."])
    host.fail(action, Fault.hang())
    run, polls = await stopped(host, lambda run: run.until(action))
    await assert_stopped(host, run, polls)


@pytest.mark.usefixtures("polls")
async def test_G2_a_run_that_does_not_stream_is_stopped_too() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    host.model.operations = frozenset({"invoke", "count_tokens"})
    run, polls = await stopped(host, lambda run: run.until("invoke_llm"))
    await assert_stopped(host, run, polls)
    assert run.completed == []


@pytest.mark.usefixtures("polls")
async def test_G2_the_host_hears_a_harmless_word_first_and_marks_the_run_itself() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    run, _ = await stopped(host, lambda run: run.until("invoke_llm_stream"))
    assert run.types == ["processor.log"]
    assert (run.code, run.error) == (None, None)


@pytest.mark.usefixtures("polls")
async def test_G2_an_unset_flag_stops_nothing() -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.5)])
    run = await host.say("go")
    assert run.calls.count("run_get") > 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


@pytest.mark.usefixtures("polls")
@pytest.mark.parametrize("fault", [Fault.error(), Fault.timeout(), Fault.malformed(), Fault.lost(), Fault.drop()])
async def test_G2_polls_that_fail_never_end_a_run(fault: Fault) -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.5)])
    host.fail("run_get", fault, times=None)
    run = await host.say("go")
    assert run.calls.count("run_get") > 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


@pytest.mark.usefixtures("polls")
async def test_G2_a_poll_that_hangs_delays_nothing() -> None:
    host = host_with(replies=[Reply("Hello.", delay=0.3)])
    host.fail("run_get", Fault.hang(), times=None)
    run = await host.say("go")
    assert run.calls.count("run_get") == 1
    assert run.final_text == "Hello."
    await assert_sound(host, run)


@pytest.mark.usefixtures("polls")
async def test_G2_a_follow_up_that_was_never_read_when_the_run_stopped_is_not_answered_as_one_of_it() -> None:
    host = host_with(replies=[Reply("late", delay=60), "Next."])
    run = host.start("go")
    await run.until("invoke_llm_stream")
    assert host.steer("and more")
    host.cancel(run)
    await run.wait()
    nxt = await host.say("again")
    assert nxt.final_text == "Next."
    assert nxt.requests[-1].text.count("and more") == 1
    await assert_sound(host, nxt)


@pytest.mark.usefixtures("polls")
async def test_G2_one_run_of_two_is_stopped_and_the_other_goes_on() -> None:
    host = host_with(replies=[Reply("late", delay=60), Reply("Hello.", delay=0.3)])
    first = host.start("a", conversation="person_1")
    await first.until("invoke_llm_stream")
    second = host.start("b", conversation="person_2")
    await second.until("invoke_llm_stream")
    host.cancel(first)
    await first.wait()
    await second.wait()
    assert (first.status, second.final_text) == ("cancelled", "Hello.")


@pytest.mark.usefixtures("polls")
async def test_G2_after_a_stop_the_next_run_of_the_chat_is_as_any_other() -> None:
    gate = asyncio.Event()
    host = host_with(replies=[LOOKING, "Hello."], tools=[Tool("look", fn=gate.wait)])
    await stopped(host, lambda run: run.until_result("tool.call.started"))
    gate.set()
    run = await host.say("again")
    assert run.final_text == "Hello."
    await assert_sound(host, run)


@pytest.mark.usefixtures("polls")
async def test_G2_over_all_runs_ten_polls_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(interrupt, "INTERVAL", 0.02)
    host = host_with()
    host.model.default = Reply("Hello.", delay=0.4)
    runs = [host.start("go", conversation=f"person_{n}") for n in range(6)]
    for run in runs:
        await run.wait()
    # Twenty polls were due in each of the six runs; the runs last less than two seconds together.
    assert 1 <= sum(run.calls.count("run_get") for run in runs) <= 30
    assert [run.final_text for run in runs] == ["Hello."] * 6


@pytest.mark.parametrize(("limit", "told"), [(3, True), (0.5, True), (30, False), (0, False)])
async def test_N4_a_limit_below_what_the_run_counts_with_is_said_truly(limit: float, told: bool) -> None:
    """LangBot ends the run by the number that is stored, also where the form's least is more."""
    run = await host_with(replies=["Hello!"], config={"timeout": limit}).say("hi")
    sooner = [line for line in run.logs if "LangBot itself ends this run after" in line]
    assert bool(sooner) is told
    assert not told or f"after {limit:.0f} s" in sooner[0]
