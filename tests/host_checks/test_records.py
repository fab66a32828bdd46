"""Counting calls, bytes and the depth of waiting."""

from __future__ import annotations

import asyncio

from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import Call, Reply, TestHost, Tool, ToolCall, depth_of

from .probes import Probe, user


def call(started: int, ended: int | None) -> Call:
    return Call("x", {}, started, 0, ended=ended)


def test_depth_is_the_longest_chain_of_calls_that_wait_for_each_other() -> None:
    assert depth_of([]) == 0
    assert depth_of([call(1, 3), call(2, 4)]) == 1
    assert depth_of([call(1, 2), call(3, 4), call(5, 6)]) == 3
    assert depth_of([call(1, 4), call(2, 3), call(5, 8), call(6, 7)]) == 2
    assert depth_of([call(1, None), call(2, 3), call(4, 5)]) == 2


async def test_calls_made_together_have_one_depth() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        await asyncio.gather(api.get_prompt(), api.history_page(), api.count_tokens("m1", [user("x" * 200_000)]))
        await api.get_prompt()

    run = await TestHost(Probe(ask)).say("hi")
    assert [one.depth for one in run.calls] == [1, 1, 1, 2]
    assert run.calls.but("get_prompt").depth == 1


async def test_bytes_of_a_call_are_those_on_the_wire() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        await api.count_tokens("m1", [user("x" * 10_000)])
        await api.count_tokens("m1", [user("x" * 20_000)])
        await api.count_tokens("m1", [user("漢" * 1_000)])

    run = await TestHost(Probe(ask)).say("hi")
    first, second, third = run.calls
    assert second.bytes_out - first.bytes_out == 10_000
    assert third.bytes_out - first.bytes_out == 6_000 - 10_000  # six ASCII bytes for one character
    assert first.bytes_in < 200


async def test_a_long_stream_is_one_call_with_real_acknowledgements() -> None:
    host = TestHost(replies=[Reply("x" * 400, chunks=400)])
    run = await host.say("hi")
    (stream,) = run.calls.of("invoke_llm_stream")
    assert stream.items == 402
    assert run.answer == "x" * 400
    assert host.acknowledgements == 100


async def test_the_bare_minimum_is_what_the_yardstick_says() -> None:
    """Q1: two calls, one for each model turn and one for each tool."""
    rounds = 10
    replies = [Reply(tool_calls=[ToolCall("find", {"q": "x"})]) for _ in range(rounds)]
    run = await TestHost(replies=[*replies, "done"], tools=[Tool("find", fn=lambda q: q)]).say("hi")
    assert len(run.calls) == 2 + (rounds + 1) + rounds
    assert [request.violations() for request in run.requests] == [[]] * (rounds + 1)


async def test_coding_inline_or_in_threads_makes_no_difference_on_the_wire() -> None:
    seen = []
    for threaded in (False, True):
        host = TestHost(replies=[Reply("漢字" * 50, chunks=20)], threaded_codec=threaded)
        run = await host.say("hi")
        # Bytes and deltas in between depend on when the two sides take turns.
        seen.append(([(one.action, one.items) for one in run.calls.of("invoke_llm_stream")], run.final_text))
    assert seen[0] == seen[1]
