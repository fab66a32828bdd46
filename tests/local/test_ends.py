"""S3: what ends a run, or a generation, before an answer does: limits, a stop, circles, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from local import Error, Finish, GenerateRequest, Message, Request, run_local_agent
from tests.written import tags

from .scripted import SEND, WEATHER, Called, Scripted, asking, forever, last_user, parts_of, stubborn, text_of, types_of


@pytest.mark.parametrize("step", [forever, stubborn])
async def test_S3_a_generation_past_the_limit_of_a_step_is_an_error(step: Any) -> None:
    provider = Scripted(step)
    parts = await parts_of(provider, asking(), step_timeout=0.1)
    assert types_of(parts) == ["message-start", "error"]
    assert isinstance(parts[-1], Error)
    assert "took too long (limit: 0.1 s)" in parts[-1].text
    assert provider.requests[0].stop.is_set()


async def test_S3_the_limit_of_a_step_begins_anew_at_the_first_token() -> None:
    async def slow_start(request: GenerateRequest) -> str:
        await asyncio.sleep(0.3)
        request.on_token("It is ")
        await asyncio.sleep(0.3)
        return "It is sunny."

    parts = await parts_of(Scripted(slow_start), asking(), step_timeout=0.5)
    assert text_of(parts) == "It is sunny."


@pytest.mark.parametrize("step", [forever, stubborn])
async def test_S3_stop_ends_the_run_as_aborted(step: Any) -> None:
    stop, provider = asyncio.Event(), Scripted(step)
    request = asking(stop=stop)
    seen: list[str] = []
    async with asyncio.timeout(20):
        async for part in run_local_agent(provider, request):
            seen.append(part.type)
            asyncio.get_running_loop().call_later(0.05, stop.set)
            last = part
    assert seen == ["message-start", "finish"]
    assert last == Finish("aborted")
    assert provider.requests[0].stop.is_set()


async def test_S3_a_stop_during_a_tool_ends_the_run_and_the_call() -> None:
    stop, ended = asyncio.Event(), asyncio.Event()

    async def call(name: str, arguments: Mapping[str, Any]) -> object:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return None

    parts = await parts_of(Scripted(tags("get_weather", city="Oslo")), asking(call=call, stop=stop))
    assert parts[-1] == Finish("aborted")
    assert ended.is_set()


async def test_S3_a_run_that_is_stopped_before_it_begins_asks_nobody() -> None:
    stop, provider = asyncio.Event(), Scripted("Hi.")
    stop.set()
    assert await parts_of(provider, asking(stop=stop)) == [Finish("aborted")]
    assert provider.requests == []


async def test_S3_a_reader_that_leaves_ends_the_generation() -> None:
    provider = Scripted(forever)
    run = run_local_agent(provider, asking())
    assert (await anext(run)).type == "message-start"
    await asyncio.sleep(0.05)
    await run.aclose()
    assert provider.requests[0].stop.is_set()


async def test_S3_the_same_call_with_the_same_answer_is_flagged_once_then_the_run_stops() -> None:
    provider, called = Scripted(tags("send_card", city="Oslo")), Called(send_card="sent")
    parts = await parts_of(provider, asking(tools=[SEND], call=called))
    assert len(called.calls) == 3
    assert "same result as before" in last_user(provider.requests[2])
    assert "repeating the same steps" in text_of(parts)
    assert parts[-1] == Finish("stop")


async def test_S3_after_max_steps_come_the_gist_of_the_last_result_and_a_plain_statement() -> None:
    results = iter(range(100))
    provider = Scripted(tags("send_card", city="Oslo"))
    called = Called(send_card=lambda _: f"card number {next(results)} is sent")
    parts = await parts_of(provider, asking(tools=[SEND], call=called), max_steps=2)
    assert len(called.calls) == 2
    assert text_of(parts) == "card number 1 is sent\n\nI stopped without finishing (steps used: 2)."
    assert (len(provider.requests), types_of(parts).count("message-start")) == (2, 2)
    assert parts[-1] == Finish("max-steps")


async def test_S3_an_empty_reply_is_tried_once_more_with_other_sampling_then_said_plainly() -> None:
    provider = Scripted("  ")
    parts = await parts_of(provider, asking())
    assert [request.temperature for request in provider.requests] == [None, 1.0]
    assert "empty answer" in text_of(parts)
    assert parts[-1] == Finish("stop")


async def test_S3_text_that_chants_ends_the_generation() -> None:
    async def chant(request: GenerateRequest) -> str:
        while not request.stop.is_set():
            request.on_token("and so on, and so on, ")
            await asyncio.sleep(0)
        return ""

    parts = await parts_of(Scripted(chant, "It is sunny."), asking())
    assert text_of(parts) == "It is sunny."


async def test_Q4_a_run_that_dies_inside_still_ends_with_words() -> None:
    class Odd(Request):
        @property
        def tools(self) -> Any:
            if provider.requests:
                raise OSError("the page is gone")
            return [WEATHER]

    provider = Scripted(tags("get_weather", city="Oslo"))
    parts = await parts_of(provider, Odd([Message("user", "weather?")], call=Called()))
    assert isinstance(parts[-1], Error)
    assert "the page is gone" in parts[-1].text


@pytest.mark.parametrize("blank", ["\n" * 2_000, "\n\n", " ", "<think>Hm.</think>\n\n", ""])
async def test_S3_an_empty_reply_is_retried_once_and_then_said_in_whole_words(blank: str) -> None:
    provider = Scripted(blank)
    parts = await parts_of(provider, asking())
    assert [request.temperature for request in provider.requests] == [None, 1.0]
    assert types_of(parts) == ["message-start", "text", "finish"]
    assert text_of(parts).startswith("The model returned an empty answer")
