"""How often a run asks the Host (quality Q1). `run_get` polls belong to waiting and are not counted."""

from __future__ import annotations

import pytest

from tests.host import Reply, Tool, ToolCall, violations

from .scenes import NUMBERED, counted, host_with


def look_up(rounds: int, per_round: int = 1, size: int = 10) -> tuple[list[Reply | str], Tool]:
    replies: list[Reply | str] = [
        Reply(tool_calls=[ToolCall("look", {"n": turn * per_round + place}) for place in range(per_round)])
        for turn in range(rounds)
    ]
    return [*replies, "Done."], Tool("look", fn=lambda n: f"{n} " + "x" * size, parameters=NUMBERED)


async def test_Q1_one_answer_takes_at_most_six_calls_and_two_steps_before_the_model() -> None:
    run = await host_with(replies=["Hello!"]).say("hi")
    assert run.answer == "Hello!"
    assert counted(run) <= 6
    before = run.calls.before_first_model_call
    assert len(before) <= 4
    assert before.depth <= 2


@pytest.mark.parametrize("streaming", [True, False])
async def test_L13_between_the_models_end_and_the_answer_stand_two_calls(*, streaming: bool) -> None:
    """Whether the Host has come to the end of the text, and whether somebody said more."""
    host = host_with(replies=["Hello!"], streaming_adapter=streaming)
    run = await host.say("hi")
    assert run.answer == "Hello!"
    names = [call.action for call in run.calls.but("run_get")]
    assert names[-2:] == ["run_events_page", "steering_pull"]
    assert names[-3].startswith("invoke_llm"), names


async def test_Q1_two_thousand_chunks_take_no_more_calls_than_one() -> None:
    text = "".join(f"word{number} " for number in range(2000))
    run = await host_with(replies=[Reply(text, chunks=2000)]).say("tell me all")
    assert run.answer == text
    assert counted(run) <= 6


@pytest.mark.parametrize(("rounds", "per_round", "size", "limit"), [(1, 1, 10, 10), (10, 1, 10, 48), (5, 8, 10, 64)])
async def test_Q1_tool_rounds_stay_within_their_calls(rounds: int, per_round: int, size: int, limit: int) -> None:
    replies, tool = look_up(rounds, per_round, size)
    run = await host_with(replies=replies, tools=[tool]).say("look things up")
    assert run.answer == "Done."
    assert len(tool.calls) == rounds * per_round
    assert counted(run) <= limit
    assert not [broken for request in run.requests for broken in violations(request.messages)]


async def test_Q1_a_hundred_tools_of_500_characters_take_410_calls_and_6_mb() -> None:
    replies, tool = look_up(100, size=500)
    run = await host_with(replies=replies, tools=[tool]).say("look a hundred things up")
    assert run.answer == "Done."
    assert len(tool.calls) == 100
    assert counted(run) <= 410
    assert run.calls.bytes_out <= 6_000_000
