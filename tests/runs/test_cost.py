"""Q1, Q2, L8: how often a run asks the Host, what it does over and over, and what a prefix cache can serve."""

from __future__ import annotations

import copy
import itertools
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from bench.prefix import shares_of, talk
from runner.channel import outbox, visible
from runner.context import tokens
from runner.conversation import readable, wire
from runner.conversation.units import Unit
from tests.host import Model, ModelRequest, Reply, RunRecord, Tool, ToolCall, violations
from tests.host.script import Scripted

from .scenes import NUMBERED, assert_sound, counted, host_with

# What a run does over and over, counted (quality Q2): times are measured by `python -m bench --only q2`.

OURS = ("runner.", "components.", "config.")
CHUNKS = 2000


def counting(counts: Counter[str], name: str, do: Callable[..., Any], *, ours_only: bool = False) -> Callable[..., Any]:
    """`do`, counted under `name`; `ours_only`: the calls that this plugin's own code makes."""

    def counted(*arguments: Any, **named: Any) -> Any:
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        counts[name] += not ours_only or caller.startswith(OURS)
        return do(*arguments, **named)

    return counted


def rounds(count: int) -> tuple[list[Reply | str], Tool]:
    looks: list[Reply | str] = [Reply(tool_calls=[ToolCall("look", {"n": n})]) for n in range(count)]
    return [*looks, "Done."], Tool("look", fn=lambda n: f"{n} " + "x" * 500, parameters=NUMBERED)


async def test_Q2_each_unit_is_converted_once_however_many_rounds_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[Unit] = []
    convert = wire._messages_of

    def counted(unit: Unit, *how: Any) -> Any:
        converted.append(unit)
        return convert(unit, *how)

    monkeypatch.setattr(wire, "_messages_of", counted)
    replies, tool = rounds(20)
    host = host_with(replies=replies, tools=[tool])
    host.remember(*[("user", "earlier"), ("assistant", "noted")] * 5)
    run = await host.say("look twenty things up")
    assert run.answer == "Done."
    times = Counter(map(id, converted))
    assert len(times) >= 20 + 5 + 5
    assert set(times.values()) == {1}


@pytest.mark.parametrize("count", [5, 20])
async def test_Q2_nothing_of_ours_copies_the_conversation(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(copy, "deepcopy", counting(counts, "copies", copy.deepcopy, ours_only=True))
    monkeypatch.setattr(BaseModel, "model_copy", counting(counts, "copies", BaseModel.model_copy, ours_only=True))
    monkeypatch.setattr(BaseModel, "model_dump", counting(counts, "dumps", BaseModel.model_dump, ours_only=True))
    replies, tool = rounds(count)
    run = await host_with(replies=replies, tools=[tool]).say("look things up")
    assert run.answer == "Done."
    assert counts["copies"] == 0
    # Log lines are dumped for their payload; nothing that grows with the rounds is.
    assert counts["dumps"] <= len(run.logs)


async def test_Q2_a_chunk_costs_nothing_that_grows_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(outbox, "wire_bytes", counting(counts, "measured", outbox.wire_bytes))
    monkeypatch.setattr(outbox.Outbox, "_snapshot", counting(counts, "snapshots", outbox.Outbox._snapshot))
    monkeypatch.setattr(outbox.Outbox, "show", counting(counts, "shown", outbox.Outbox.show))
    monkeypatch.setattr(visible, "whole_characters", counting(counts, "mended", readable.whole_characters))
    pieces = [f"word{number} " for number in range(CHUNKS)]
    run = await host_with(replies=[Reply(chunks=pieces)]).say("tell me all")
    assert run.answer == "".join(pieces)
    assert counts["shown"] >= CHUNKS
    # One for each snapshot that went out, and one for the answer.
    assert counts["snapshots"] <= len(run.deltas) + 1
    assert counts["measured"] <= len(run.deltas) + 3
    assert counts["mended"] <= 5


async def test_Q2_a_half_character_in_a_stream_does_not_make_every_later_chunk_dear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: Counter[str] = Counter()
    monkeypatch.setattr(visible, "whole_characters", counting(counts, "mended", readable.whole_characters))
    pieces = ["\ud83e", "\udd9c ", *[f"word{number} " for number in range(CHUNKS)]]
    run = await host_with(replies=[Reply(chunks=pieces)]).say("tell me all")
    assert run.answer == "🦜 " + "".join(pieces[2:])
    assert counts["mended"] <= 10


async def test_Q2_long_texts_are_tokenised_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    here, lengths, elsewhere = threading.get_ident(), [0], [0]
    count = tokens.Tokenizer._count

    def counted(tokenizer: tokens.Tokenizer, text: str) -> int:
        (lengths if threading.get_ident() == here else elsewhere).append(len(text))
        return count(tokenizer, text)

    monkeypatch.setattr(tokens.Tokenizer, "_count", counted)
    host = host_with(
        replies=["A summary of what was said before.", "Here."],
        config={"context-window-tokens": 16_000, "context-reserve-tokens": 4_000, "context-history-fetch-limit": 100},
    )
    host.remember(*[("user", "a question " * 300), ("assistant", "an answer " * 300)] * 20)
    run = await host.say("And now?")
    assert run.status == "completed"
    assert max(elsewhere) > 2_000
    assert max(lengths) < 500


# How often a run asks the Host (quality Q1). `run_get` polls belong to waiting and are not counted.


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


# L8: what a provider's prefix cache can serve: each request begins as the one before it was sent.


def sent(request: ModelRequest) -> list[str]:
    """The request as a cache reads it: tools, then each message."""
    return [json.dumps(each, ensure_ascii=False) for each in (request.funcs, *request.messages)]


def asked_of(runs: Sequence[RunRecord], model: str = "m1") -> list[ModelRequest]:
    return [request for run in runs for request in run.requests if request.model == model]


def anew(earlier: ModelRequest, later: ModelRequest) -> list[str]:
    """What of the earlier request is not at the beginning of the later one."""
    before, after = sent(earlier), sent(later)
    same = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), len(before))
    return before[same:]


def numbered() -> list[Tool]:
    return [Tool("look", fn=lambda n: f"result {n}", parameters=NUMBERED)]


def look(n: int, said: str = "", call_id: str | None = None) -> Reply:
    return Reply(said, tool_calls=[ToolCall("look", {"n": n}, call_id)])


@pytest.mark.parametrize("ids", [(None, None, None), ("toolu_01", "toolu_02", "toolu_03"), ("call_9", "call_9", None)])
async def test_L8_the_rounds_of_a_run_are_replayed_as_they_were_sent(ids: tuple[str | None, ...]) -> None:
    replies: list[Scripted] = [
        look(1, "I look first. ", ids[0]),
        look(2, "", ids[1]),
        look(3, "Once more.\n", ids[2]),
        "It is three.",
    ]
    host = host_with(models=[Model("m1", replies=[*replies, "You are welcome.", *replies])], tools=numbered())
    for text in ("How many?", "Thanks.", "And now?"):
        await assert_sound(host, await host.say(text))
    requests = asked_of(host.runs)
    assert len(requests) == 9
    assert [anew(one, two) for one, two in itertools.pairwise(requests)] == [[]] * 8


async def test_L8_a_lead_in_that_people_read_once_is_replayed_each_time_it_was_sent() -> None:
    replies: list[Scripted] = [look(1, "Let me look."), look(2, "Let me look."), "Let me look. It is two."]
    host = host_with(models=[Model("m1", replies=[*replies, "Yes."])], tools=numbered())
    await host.say("How many?")
    run = await host.say("Sure?")
    assert run.requests[0].text.count("Let me look.") == 2
    assert "It is two." in run.requests[0].text


@pytest.mark.parametrize("form", ["native", "tags"])
async def test_L8_four_fifths_of_what_a_small_model_reads_can_be_served(form: str) -> None:
    host = await talk(8_000, turns=12, model_profile="small", tool_call_format=form)
    assert shares_of(host.runs).percent >= 78


async def test_L8_what_comes_with_a_failure_stands_behind_the_tools() -> None:
    replies: list[Scripted] = [look(1), look(2), "It failed."]
    broken = Tool("look", fn=lambda n: 1 / 0, parameters=NUMBERED)
    config = {"model-profile": "small", "tool-call-format": "tags"}
    host = host_with(models=[Model("m1", replies=replies)], tools=[broken], config=config)
    run = await host.say("How many?")
    before, after = run.requests[0].system, run.requests[1].system
    assert after.startswith(before) and len(after) > len(before)
