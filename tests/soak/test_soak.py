"""Chats from printed seeds, with random faults: the invariants of Q4 hold after every run."""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest

from tests.host import Model, RunRecord, TestHost
from tests.runs.scenes import Plants, host_with
from tests.seeds import SEED

from .__main__ import played, soak
from .chat import breaches, leftovers, unaffected
from .world import CALM

CHATS = int(os.environ.get("LOCALAGENT_SOAK_CHATS", "36"))


def test_Q4_whatever_happens_in_a_chat_every_run_ends_well_and_the_next_is_unaffected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = soak(SEED, chats=CHATS)
    with capsys.disabled():
        print(f"\nsoak from seed {SEED}: {report.text}")  # noqa: T201 - the seed has to be seen
    assert report.findings == []
    assert report.chats == CHATS
    assert report.runs >= 2 * CHATS
    assert len(report.faults) >= 8, "too few kinds of faults struck to prove anything"


def test_Q4_the_same_seed_gives_the_same_chat() -> None:
    one, other = played(7), played(7)
    assert (one.runs, one.faults, one.findings) == (other.runs, other.faults, other.findings)


# That a breach would be noticed


async def ended(**given: object) -> tuple[TestHost, RunRecord, Plants]:
    host = host_with(models=[Model("m1", default=CALM)], **given)
    return host, await host.say("hi"), Plants(Random(1))


@pytest.mark.parametrize(
    ("breach", "words"),
    [
        (lambda run: run.results.append(run.results[-1]), "2 terminal events"),
        (lambda run: run.results.pop(), "0 terminal events"),
        (lambda run: run.results.append({"type": "message.delta", "data": {}}), "behind the terminal one"),
        (lambda run: run.dropped.append(({}, "why")), "does not take"),
        (lambda run: setattr(run, "status", "timeout"), "ended as timeout"),
        (lambda run: run.steering.append(("e1", "dropped")), "lost follow-ups"),
        (lambda run: run.requests[0].messages.append({"role": "tool"}), "illegal request"),
        (lambda run: run.completed and run.chat.cards[-1].texts.append("else"), "the card shows"),
    ],
)
async def test_Q4_a_breach_is_found(breach: object, words: str) -> None:
    host, run, plants = await ended()
    assert list(breaches(host, run, plants, cut_off=False)) == []
    assert callable(breach)
    breach(run)
    assert any(words in found for found in breaches(host, run, plants, cut_off=False))
    await host.aclose()


async def test_Q4_a_word_in_the_log_is_found() -> None:
    host, run, plants = await ended()
    run.results.insert(0, {"type": "processor.log", "data": {"text": plants.word("message"), "level": "info"}})
    assert any("in the log: message" in found for found in breaches(host, run, plants, cut_off=False))
    await host.aclose()


async def test_Q4_what_a_run_leaves_behind_is_found() -> None:
    host, run, _ = await ended()
    assert await leftovers(host) == []
    left = asyncio.create_task(asyncio.sleep(60), name="left behind")
    assert any("left behind" in found for found in await leftovers(host))
    left.cancel()
    run.status = "failed"
    assert any("ended as failed" in found for found in unaffected(host, run))
    await host.aclose()
