"""Chats as data, what counts as a difference between two sights of one, and what is counted of a run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from components.runner.default import DefaultRunner
from tests.host import Call, Reply, TestHost, Tool, ToolCall, depth_of, manifest_of, probe
from tests.host.scenario import Scenario, differences, load, play, witness
from tests.host.seen import Seen, SeenRow, SeenTurn, contrast

from .probes import Probe, user

# Scenarios: chats as data.

CHAT: dict[str, Any] = {
    "name": "a tool, then a question about it",
    "tools": [{"name": "weather", "result": {"sky": "clear"}}],
    "replies": [
        {"text": "Looking. ", "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        {"text": "Clear in Oslo."},
    ],
    "turns": [
        {
            "say": "Weather in Oslo?",
            "steer": ["And make it short."],
            "expect": {
                "answer": "Looking. Clear in Oslo.",
                "requests": 2,
                "roles": ["system", "user", "assistant", "tool"],
                "in_last_request": ["clear"],
            },
        },
        {"say": "Thanks", "expect": {"contains": ["Thanks"], "requests": 1}},
    ],
    "history": [
        ["user", "Weather in Oslo?"],
        ["user", "And make it short."],
        ["assistant", "Looking. Clear in Oslo."],
        ["user", "Thanks"],
        ["assistant", "Echo: Thanks"],
    ],
}


async def test_a_scenario_that_comes_out_as_expected_has_no_differences() -> None:
    assert await play(Scenario.of(CHAT)) == []


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("answer", "x", "turn 1: answer 'Looking. Clear in Oslo.'"),
        ("contains", ["x"], "turn 1: 'x' is missing in the answer 'Looking. Clear in Oslo.'"),
        ("requests", 3, "turn 1: 2 requests"),
        ("roles", ["user"], "turn 1: roles ['system', 'user', 'assistant', 'tool']"),
        ("in_last_request", ["x"], "turn 1: 'x' is missing in the last request"),
    ],
)
async def test_each_difference_is_told(key: str, value: Any, found: str) -> None:
    first = {**CHAT["turns"][0], "expect": {key: value}}
    assert await play(Scenario.of({**CHAT, "turns": [first, CHAT["turns"][1]]})) == [found]


async def test_a_different_history_is_told_and_unknown_keys_are_refused() -> None:
    (found,) = await play(Scenario.of({**CHAT, "history": []}))
    assert found.startswith("history: ")
    with pytest.raises(TypeError):
        Scenario.of({**CHAT, "turn": []})


# Two sights of one scenario: what counts as a difference, and what is only another name for the same thing.


def seen(offset: int = 0, **turn: Any) -> Seen:
    """A chat of one question on a Host whose numbers begin at `offset`."""
    page = f'[{{"next_cursor": "{offset + 1}", "seq": {offset + 2}}}]'
    told = SeenTurn(
        cards=[("He", "Hello")],
        requests=[{"model": "m1", "messages": [{"role": "user", "content": "hi"}]}],
        results=[("message.completed", {"message": {"content": page}})],
        status="completed",
        reason="stop",
        usage={"total_tokens": 10},
    )
    rows = [SeenRow(offset + n, role, "hi", {"content": "hi"}, [], {}) for n, role in ((1, "user"), (2, "assistant"))]
    return Seen([replace(told, **turn)], rows, {f"run-{offset}": "<run>"})


def test_numbers_and_ids_of_the_host_are_no_difference() -> None:
    here, there = seen(0, reason="run-0 on 2026-01-02"), seen(40, reason="run-40 on 2026-03-04T05:06:07Z")
    assert contrast(here, there, {}) == []


@pytest.mark.parametrize(
    ("turn", "path"),
    [
        ({"cards": [("He", "Hello!")]}, "/turns/0/cards/0/text"),
        ({"cards": [("Ho", "Hello")]}, "/turns/0/cards/0/grew"),
        ({"cards": []}, "/turns/0/cards"),
        ({"status": "failed"}, "/turns/0/status"),
        ({"usage": {"total_tokens": "10"}}, "/turns/0/usage/total_tokens"),
        ({"requests": []}, "/turns/0/requests"),
        ({"results": [("message.completed", {})]}, "/turns/0/results/0/1/message"),
        (
            {"results": [("message.completed", {"message": {"content": '[{"next_cursor": "2", "seq": 2}]'}})]},
            "/turns/0/results/0/1/message/content/list/0/next_cursor",
        ),
        (
            {"results": [("message.completed", {"message": {"content": '[{"next_cursor": 1, "seq": 2}]'}})]},
            "/turns/0/results/0/1/message/content/list/0/next_cursor",
        ),
    ],
)
def test_everything_else_is_one(turn: dict[str, Any], path: str) -> None:
    (found,) = contrast(seen(), seen(**turn), {})
    assert found.startswith(f"{path}: ")
    assert contrast(seen(), seen(**turn), {path: "known"}) == []


def test_a_row_that_is_stored_otherwise_is_a_difference() -> None:
    other = seen()
    changed = replace(other, rows=[other.rows[0], replace(other.rows[1], content_json={"content": None})])
    (found,) = contrast(seen(), changed, {})
    assert found == "/rows/1/content_json/content: 'hi' / None"


# The scenarios of tests/scenarios on the test host: the real LangBot plays the same file in tests/e2e.

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = load(ROOT / "tests" / "scenarios" / "parity.json")


async def seen_here(scenario: Scenario) -> tuple[list[str], Seen]:
    """Differences from what is expected, and all that was seen."""
    runner = probe.runner() if scenario.probe else DefaultRunner()
    manifest = probe.manifest() if scenario.probe else manifest_of(ROOT / "components" / "runner" / "default.yaml")
    outcomes, seen = await witness(scenario, runner, manifest, probe.tools())
    return differences(scenario, outcomes, [(row.role, row.text) for row in seen.rows]), seen


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_each_scenario_comes_out_as_written_down(scenario: Scenario) -> None:
    found, seen = await seen_here(scenario)
    assert found == []
    assert contrast(seen, seen, {}) == []


# Counting calls, bytes and the depth of waiting.


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
