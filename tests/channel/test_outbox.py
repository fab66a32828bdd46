"""C6: what reaches the Host, in which order, and never faster than it can digest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.channel.outbox import BASE_PAUSE, FRAME_BUDGET, HEARTBEAT, Outbox, pause_after, wire_bytes
from runner.host.events import Answer, Completed, Event, Failed, Log, Snapshot
from tests.unit.border import until


@dataclass
class Clock:
    """Time that passes only when a test says so (seconds)."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Reader:
    """Reads an outbox whenever the test lets it, and remembers when each event came."""

    outbox: Outbox
    clock: Clock
    events: list[Event] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def ready(self) -> bool:
        """Drive the reader by hand until it would wait; true when the terminal event came."""
        while True:
            step = self.outbox._next()
            try:
                step.send(None)
            except StopIteration as got:
                self.events.append(got.value)
                self.times.append(self.clock.now)
                if isinstance(got.value, Completed | Failed):
                    return True
            else:
                step.close()
                return False


STEPS = st.lists(st.tuples(st.text(max_size=20), st.floats(0, 0.5), st.booleans()), max_size=30)


async def played(steps: Sequence[tuple[str, float, bool]]) -> tuple[Reader, str, list[str]]:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    text, shown = "", []
    for place, (piece, pause, logs) in enumerate(steps):
        text += piece
        shown.append(text)
        reader.outbox.show(text)
        if logs:
            reader.outbox.post(Log(str(place)))
        reader.ready()
        clock.now += pause
        reader.ready()
    return reader, text, shown


@settings(max_examples=60)
@given(STEPS)
def test_C6_snapshots_are_cumulative_at_most_one_per_300_ms_and_the_newest_wins(
    steps: list[tuple[str, float, bool]],
) -> None:
    reader, _, shown = asyncio.run(played(steps))
    sent = [(event, at) for event, at in zip(reader.events, reader.times, strict=True) if isinstance(event, Snapshot)]
    for (one, before), (two, after) in pairwise(sent):
        assert two.text.startswith(one.text) and two.text != one.text
        assert after - before >= BASE_PAUSE - 1e-9
    assert [event.sequence for event, _ in sent] == list(range(1, len(sent) + 1))
    assert all(event.text in shown for event, _ in sent)
    assert [event.text for event in reader.events if isinstance(event, Log)] == [
        str(place) for place, (_, _, logs) in enumerate(steps) if logs
    ], "nothing but snapshots is ever dropped"


@settings(max_examples=60)
@given(STEPS)
def test_C6_the_last_snapshot_equals_the_answer_and_the_end_follows_at_once(
    steps: list[tuple[str, float, bool]],
) -> None:
    async def ended() -> tuple[list[Event], str, bool]:
        reader, text, _ = await played(steps)
        reader.outbox.finish(Answer(text or "x"), Completed())
        return reader.events, text or "x", reader.ready()

    events, text, over = asyncio.run(ended())
    assert over and events[-2:] == [Answer(text), Completed()]
    sent = [event.text for event in events if isinstance(event, Snapshot)]
    assert not sent or not text.strip() or sent[-1] == text


async def test_D1_a_line_that_nobody_waits_for_goes_out_behind_the_first_text_or_before_the_last_words() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.post_later(Log("renamed"))
    reader.ready()
    assert reader.events == []
    reader.outbox.show("Hi")
    reader.ready()
    assert reader.events == [Snapshot("Hi", 1), Log("renamed")]
    reader.outbox.post_later(Log("late"))
    reader.outbox.finish(Answer("Hi"), Completed())
    assert reader.ready()
    assert reader.events[2:] == [Log("late"), Answer("Hi"), Completed()]
    hushed = Reader(Outbox(clock), clock)
    hushed.outbox.post_later(Log("renamed"))
    hushed.outbox.hush()
    hushed.outbox.finish(Failed("stopped", "cancelled"))
    assert hushed.ready()
    assert hushed.events == [Failed("stopped", "cancelled")]


async def test_C6_the_first_text_goes_out_at_once() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("H")
    reader.ready()
    assert reader.events == [Snapshot("H", 1)]


async def test_C6_a_stale_snapshot_is_replaced_not_queued() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    for text in ("a", "ab", "abc", "abcd"):
        reader.outbox.show(text)
        reader.ready()
    clock.now += 1
    reader.ready()
    assert reader.events == [Snapshot("a", 1), Snapshot("abcd", 2)]


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
async def test_C6_white_space_alone_is_not_shown(text: str) -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show(text)
    reader.ready()
    assert reader.events == []


async def test_C6_a_text_that_says_nothing_new_is_not_sent_again() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("a")
    reader.ready()
    clock.now += 5
    reader.outbox.show("a")
    reader.outbox.finish(Answer("a"), Completed())
    reader.ready()
    assert reader.events == [Snapshot("a", 1), Answer("a"), Completed()]


async def test_C6_an_answer_that_was_never_shown_needs_no_snapshot() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("a")
    reader.outbox.finish(Answer("a"), Completed())
    reader.ready()
    assert reader.events == [Answer("a"), Completed()]


async def test_C8_a_failure_drops_what_was_not_shown_yet() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("a")
    reader.outbox.finish(Failed("x", "runner.error"))
    reader.ready()
    assert reader.events == [Failed("x", "runner.error")]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=50))
def test_C6_wire_bytes_are_those_of_the_wires_own_json(text: str) -> None:
    assert wire_bytes(text) == len(json.dumps(text).encode("ascii"))


@pytest.mark.parametrize("letter", ["a", "中", "😀", '"', "\x00"])
async def test_C6_beyond_the_frame_snapshots_stop_and_a_frame_never_grows_past_1_mib(letter: str) -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    for size in range(0, 500_000, 25_000):
        reader.outbox.show(letter * (size + 1))
        reader.ready()
        clock.now += 60
    sent = [event for event in reader.events if isinstance(event, Snapshot)]
    assert 0 < len(sent) < 20
    assert all(2 * wire_bytes(event.text) <= FRAME_BUDGET < 2**20 for event in sent)


def test_C6_snapshots_move_apart_as_an_answer_grows() -> None:
    assert BASE_PAUSE <= pause_after("") < pause_after("x" * 10_000) < pause_after("x" * 100_000)


async def test_C6_a_reader_that_waits_is_woken_by_a_post_and_by_a_snapshot_that_becomes_due() -> None:
    loop = asyncio.get_running_loop()
    outbox = Outbox(loop.time)

    async def collected() -> list[Event]:
        return [event async for event in outbox.events()]

    reading = asyncio.create_task(collected())
    await asyncio.sleep(0)
    outbox.show("a")
    await asyncio.sleep(0)
    outbox.show("ab")
    await asyncio.sleep(0)
    outbox.post(Log("l"))
    await until(lambda: outbox.last_shown == "ab")
    outbox.finish(Answer("ab"), Completed())
    assert await reading == [Snapshot("a", 1), Log("l"), Snapshot("ab", 2), Answer("ab"), Completed()]


async def test_G3_a_long_silence_is_broken_by_a_line_of_log_and_only_a_long_one() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    assert 60 <= HEARTBEAT <= 120
    for pause in (HEARTBEAT - 1, 0.5, 1, HEARTBEAT - 1, 2):
        clock.now += pause
        reader.ready()
    assert len(reader.events) == 2 and all(isinstance(event, Log) for event in reader.events)


async def test_G3_snapshots_are_no_silence() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    for place in range(1, 5):
        clock.now += HEARTBEAT - 1
        reader.outbox.show("a" * place)
        reader.ready()
    assert all(isinstance(event, Snapshot) for event in reader.events)


async def test_G1_flush_sends_the_waiting_text_and_tells_the_place_of_the_mark_behind_it() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("one")
    reader.ready()
    reader.outbox.post(Log("a tool began"))
    reader.outbox.show("one two")
    place = reader.outbox.flush(Log("what it came to"))
    reader.ready()
    assert [type(event) for event in reader.events] == [Snapshot, Log, Snapshot, Log]
    assert isinstance(reader.events[2], Snapshot) and reader.events[2].text == "one two"
    assert place == 4


async def test_G1_where_nothing_was_shown_there_is_no_place_to_wait_for() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    assert reader.outbox.flush(Log("what it came to")) is None
    reader.ready()
    reader.outbox.hush()
    assert reader.outbox.flush(Log("once more")) is None
    reader.ready()
    assert reader.events == [Log("what it came to")]


async def test_G2_no_sign_of_life_comes_between_a_wish_to_stop_and_the_last_words() -> None:
    """The Host closes a stopped run at its first result, which has to be what was said so far."""
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.ready()
    clock.now += HEARTBEAT - 1
    reader.outbox.hush()
    clock.now += 2
    assert not reader.ready() and reader.events == []
    reader.outbox.finish(Answer("So far.", None, ()), Failed("stopped", "cancelled"))
    assert reader.ready()
    assert [type(event) for event in reader.events] == [Answer, Failed]


async def test_G2_a_hushed_outbox_says_nothing_at_a_flush() -> None:
    clock = Clock()
    reader = Reader(Outbox(clock), clock)
    reader.outbox.show("one")
    reader.ready()
    reader.outbox.show("one two")
    reader.outbox.hush()
    reader.outbox.flush(Log("what it came to"))
    reader.ready()
    assert [type(event) for event in reader.events] == [Snapshot]
