"""What a run does over and over, counted (quality Q2): times are measured by `python -m bench --only q2`."""

from __future__ import annotations

import copy
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from runner.channel import outbox, visible
from runner.context import tokens
from runner.conversation import readable, wire
from runner.conversation.units import Unit
from tests.host import Reply, Tool, ToolCall
from tests.runs.scenes import NUMBERED, host_with

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
