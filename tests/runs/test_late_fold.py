"""L1, second half: the conversation is folded behind the whole text, and whatever happens meanwhile, the answer is on
time and no row is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.host import Fault, Model, ModelRequest, Reply, RunRecord, TestHost
from tests.host.steered import run_steered

from .long_chats import FACT, chats, chatter, copied, is_summary, nowhere, prose, stored, summaries, window
from .scenes import assert_ended, assert_sound, host_with

SHOWING = 0.1
"""Seconds for which LangBot shows a text on an adapter that streams."""

MEANWHILE = "And something else?"


class Scene:
    """A chat whose rows leave the fetch limit, so that a fold is due behind the next answer. `seconds`: what a model
    takes for a summary. `told`: facts that stood in a request for one."""

    def __init__(self, *, shows: bool = True, seconds: float = 0.0, rows: int = 60, **given: Any) -> None:
        self.told: set[str] = set()
        self.seconds = seconds
        given.setdefault("config", window(32_000, date_grounding=False, timeout=120))
        self.host = host_with(
            models=[Model("m1", default=self.reply)],
            chat_seconds=SHOWING if shows else 0.0,
            streaming_adapter=shows,
            **given,
        )
        self.facts = chatter(self.host, Random(7), rows, 20)

    def reply(self, request: ModelRequest) -> Reply:
        if not is_summary(request):
            return Reply(f"An answer to {request.last_user[-40:]}")
        self.told |= set(FACT.findall(request.text))
        return Reply(copied(request), delay=self.seconds)

    def lost(self) -> list[str]:
        return nowhere(self.host, self.told)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.05)


async def folding(run: RunRecord) -> None:
    """Until a run asks for its summary."""
    await until(lambda: bool(summaries(run)) or not run.active)
    assert run.active


def test_L1_the_whole_text_stands_in_a_delta_then_the_fold_comes_then_the_completed_message() -> None:
    async def play() -> None:
        scene = Scene(seconds=20)
        run = scene.host.start("And now?")
        await folding(run)
        assert run.deltas[-1] == "An answer to And now?"
        assert run.completed == []
        await run.wait()
        assert [is_summary(request) for request in run.requests] == [False, True]
        checkpoint = stored(scene.host)
        assert checkpoint is not None and checkpoint.covers_until is not None
        assert scene.lost() == []
        await assert_sound(scene.host, run)
        again = await scene.host.say("And then?")
        assert len(summaries(again)) == 0
        await scene.host.aclose()

    run_steered(play())


def test_L1_a_follow_up_stops_the_fold_and_the_same_message_goes_on() -> None:
    async def play() -> None:
        scene = Scene(seconds=30)
        run = scene.host.start("And now?")
        await folding(run)
        await asyncio.sleep(3)
        began = asyncio.get_running_loop().time()
        assert scene.host.steer(MEANWHILE)
        await until(lambda: len(chats(run)) == 2)
        assert asyncio.get_running_loop().time() - began < 2
        await run.wait()
        assert run.final_text == f"An answer to And now?\n\nAn answer to {MEANWHILE}"
        assert len(run.cards) == 1 and scene.host.model.aborted >= 1
        await assert_sound(scene.host, run)
        await scene.host.aclose()

    run_steered(play())


def test_L1_a_stop_ends_the_fold_at_once_and_the_answer_stays() -> None:
    async def play() -> None:
        scene = Scene(seconds=30)
        run = scene.host.start("And now?")
        await folding(run)
        began = asyncio.get_running_loop().time()
        scene.host.cancel(run)
        await run.wait()
        assert asyncio.get_running_loop().time() - began < 2.5
        assert (run.final_text or "").startswith("An answer to And now?")
        assert_ended(run, ended=False)
        await scene.host.aclose()

    run_steered(play())


@pytest.mark.parametrize("seconds", [30, 500])
def test_L1_a_fold_has_a_third_of_the_time_left_and_the_answer_has_no_note(seconds: float) -> None:
    async def play() -> None:
        scene = Scene(seconds=seconds, config=window(32_000, date_grounding=False, timeout=60))
        began = asyncio.get_running_loop().time()
        run = await scene.host.say("And now?")
        assert asyncio.get_running_loop().time() - began < 25
        assert (run.status, run.final_text) == ("completed", "An answer to And now?")
        assert stored(scene.host) is None or scene.lost() == []
        await assert_sound(scene.host, run)
        await scene.host.aclose()

    run_steered(play())


def test_L1_where_nothing_tells_of_a_stream_a_message_is_late_by_two_seconds_and_once_in_ten() -> None:
    async def play() -> None:
        scene = Scene(shows=False, seconds=500)
        late = []
        for turn in range(24):
            began = asyncio.get_running_loop().time()
            run = await scene.host.say(f"Turn {turn}")
            took = asyncio.get_running_loop().time() - began
            assert took <= 2.0
            late.append(bool(summaries(run)))
            assert_ended(run)
        places = [place for place, is_late in enumerate(late) if is_late]
        assert places and all(second - first >= 10 for first, second in pairwise(places))
        await scene.host.aclose()

    run_steered(play())


def test_L1_a_slow_host_is_not_taken_for_a_stream() -> None:
    async def play() -> None:
        scene = Scene(shows=False, seconds=500, result_seconds=0.2)
        began = asyncio.get_running_loop().time()
        run = await scene.host.say("And now?")
        assert asyncio.get_running_loop().time() - began < 5
        assert run.final_text == "An answer to And now?"
        await scene.host.aclose()

    run_steered(play())


@pytest.mark.parametrize("shows", [True, False])
async def test_L1_a_summariser_that_fails_behind_the_answer_changes_nothing(shows: bool) -> None:
    scene = Scene(shows=shows)
    scene.host.fail("invoke_llm_stream", Fault.error(), nth=2, times=None)
    run = await scene.host.say("And now?")
    assert (run.status, run.final_text) == ("completed", "An answer to And now?")
    assert (checkpoint := stored(scene.host)) is None or checkpoint.summary == ""
    await assert_sound(scene.host, run)


async def test_Q1_a_run_with_nothing_to_fold_makes_the_calls_it_made_before() -> None:
    scene = Scene(rows=6)
    run = await scene.host.say("And now?")
    assert sorted(run.calls.but("run_get").names) == sorted(
        (await host_with(replies=["x"], chat_seconds=SHOWING).say("hi")).calls.but("run_get").names
    )


# Races, at any time of a run whose fold takes ten seconds

Event = tuple[str, float]
EVENTS = ("follow-up", "stop", "reset", "second run", "worker killed")
PLANS = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 130).map(lambda tenths: tenths / 10)), min_size=1, max_size=3
)


async def _happens(scene: Scene, run: RunRecord, event: Event, runs: list[RunRecord]) -> None:
    what, when = event
    await asyncio.sleep(when)
    if what == "follow-up" and run.active:
        scene.host.steer(f"{MEANWHILE} {when}")
    elif what == "stop":
        scene.host.cancel(run)
    elif what == "reset":
        scene.host.reset()
    elif what == "second run":
        runs.append(scene.host.start(f"Another message {when}"))
    elif run.task is not None:
        run.task.cancel()


async def _raced(events: Sequence[Event], timeout: float) -> None:
    scene = Scene(seconds=10, config=window(32_000, date_grounding=False, timeout=timeout))
    run = scene.host.start("And now?")
    runs = [run]
    kinds = {what for what, _ in events}
    happening = [asyncio.create_task(_happens(scene, run, event, runs)) for event in events]
    await asyncio.gather(*happening)
    await asyncio.gather(*[one.task for one in runs if one.task is not None], return_exceptions=True)
    for one in runs:
        _assert_answered(one, kinds)
    assert scene.lost() == [], "a row is nowhere"
    last = await scene.host.say("And in the end?")
    assert (last.final_text or "").endswith("And in the end?")
    _assert_whole(scene.host, last, reset="reset" in kinds)
    await scene.host.aclose()


def _assert_answered(run: RunRecord, kinds: set[str]) -> None:
    assert len(run.completed) <= 1
    if not kinds & {"worker killed", "stop"}:
        assert run.status == "completed"
        assert (run.final_text or "").startswith("An answer to ")
        assert all(word in (None, "injected") for _, word in run.steering if word != "queued")


def _assert_whole(host: TestHost, last: RunRecord, *, reset: bool) -> None:
    """What is not folded stands in the request once."""
    checkpoint = stored(host)
    until = int(checkpoint.covers_until or 0) if checkpoint else 0
    rows = [row for row in host.transcript() if row.seq > until and row.role == "assistant" and row.text]
    said = [str(message["content"]) for message in chats(last)[0].messages if message["role"] == "assistant"]
    texts = "\n".join(said)
    for row in rows[:-1] if not reset else []:
        assert texts.count(str(row.text)) >= 1
    facts = [found for text in said for found in FACT.findall(text) if "Row" in text]
    assert len(facts) == len(set(facts)), "a row is doubled"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(PLANS, st.sampled_from([20, 60]))
@example([("follow-up", 0.3)], 60)
@example([("follow-up", 5.0), ("follow-up", 5.5)], 60)
@example([("stop", 4.0), ("follow-up", 4.0)], 60)
@example([("reset", 5.0)], 60)
@example([("second run", 3.0), ("reset", 6.0)], 20)
@example([("worker killed", 5.0)], 60)
@example([("worker killed", 10.4)], 60)
def test_L1_whatever_happens_during_a_late_fold_no_row_is_lost_and_none_doubled(
    events: list[Event], timeout: float
) -> None:
    run_steered(_raced(events, timeout))


@pytest.mark.parametrize("turns", [12])
async def test_L1_prose_stays_in_the_chat_while_it_is_folded(turns: int) -> None:
    scene = Scene()
    for turn in range(turns):
        run = await scene.host.say(f"Turn {turn}. {prose(Random(turn), 30)}")
        assert summaries(run) == [] or is_summary(run.requests[-1])
        assert scene.lost() == []
