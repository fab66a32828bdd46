"""S4 and S5: slow calls go on as jobs, new errors ride along. More in tests/runs/test_small_{jobs,evidence}.py."""

from __future__ import annotations

import pytest

from runner.small.part import Part, Parts
from runner.tools import jobs
from runner.tools.jobs import JOB_OUTPUT
from tests.host import Tool
from tests.written import bare, says

from .stage import act, play, shows

BUILD = bare("build", city="x")
ASK = bare(JOB_OUTPUT, job="job_1")


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SMALL_SOFT_SECONDS", 0.4)


def slow(seconds: float = 0.6) -> Tool:
    return act("build", "all is built", delay=seconds)


async def test_S4_a_call_past_the_limit_goes_on_as_a_job_with_an_id_and_what_is_known() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, *[says("ok")] * 2, tools=[slow()])
        told = run.requests[1].text
        return "job_1" in told, "all is built" in told

    await shows(Part.JOBS, scenario, wanted=(True, False), without=(False, True))


async def test_S4_its_output_can_be_asked_for_once_there_is_a_job_and_exists_once_the_host_returns_it() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, ASK, says("ok"), tools=[slow()])
        requests = run.requests[:3]
        offered = [JOB_OUTPUT in request.system for request in requests]
        return offered, ["all is built" in request.text for request in requests]

    wanted, without = ([False, True, True], [False, False, True]), ([False] * 3, [False, True, True])
    await shows(Part.JOBS, scenario, wanted=wanted, without=without)


async def test_S4_the_end_says_what_is_given_up_and_may_still_run() -> None:
    async def scenario(parts: Parts) -> object:
        run = await play(parts, BUILD, *[says("It goes on.")] * 3, tools=[slow(2.0)])
        return "build" in str(run.final_text), "all is built" in run.requests[-1].text

    await shows(Part.JOBS, scenario, wanted=(True, False), without=(False, True))


async def test_S5_new_errors_of_a_console_ride_along_with_an_action() -> None:
    console = Tool("browser_console_messages", result="[error] button is undefined")
    click = act("browser_click", "clicked")
    go = Tool("browser_navigate", result="opened", parameters={"type": "object", "properties": {"url": {}}})

    async def scenario(parts: Parts) -> object:
        replies = [bare("browser_navigate", url="http://localhost:8000/"), bare("browser_click", city="x")]
        run = await play(parts, *replies, *[says("ok")] * 2, tools=[console, click, go])
        return "button is undefined" in run.requests[2].text

    await shows(Part.EVIDENCE, scenario, wanted=True, without=False)
