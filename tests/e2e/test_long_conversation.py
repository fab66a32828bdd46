"""Sixty turns through the real LangBot, in a window that holds a third of them (F3, F5, F6)."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable
from random import Random

import pytest

from runner.context.budget import Budget
from runner.context.tokens import load_tokenizer
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Reply, Request, ScriptedModel, say
from tests.host import violations
from tests.runs.long_chats import PART

pytestmark = pytest.mark.usefixtures("ours")

TURNS = 60
WINDOW = 8_000
SUMMARY = re.compile(r"<conversation_summary>(.*)</conversation_summary>\Z", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_LEAD = re.compile(r"^(?:- )?(?:User: |Assistant: )?")
_WORDS = ("garden", "ladder", "autumn", "kettle", "valley", "ribbon", "cellar", "copper", "willow", "saddle", "pebble")


def prose(random: Random, words: int) -> str:
    said = [random.choice(_WORDS) for _ in range(words)]
    return " ".join(" ".join(said[at : at + 8]).capitalize() + "." for at in range(0, words, 8))


def newest(request: Request) -> str:
    return next(text for role, text in reversed(request.texts) if role == "user")


def is_summary(request: Request) -> bool:
    return PART in newest(request)


def copying(random: Random) -> Callable[[Request], Reply]:
    """A model that chats about nothing and summarises by copying sentences: those that ask to be remembered, then the
    newest, up to the number of words it is asked for."""

    def reply(request: Request) -> Reply:
        if not is_summary(request):
            return say(prose(random, 70), size=60)
        limit = re.search(r"About (\d+) words", request.texts[0][1])
        assert limit is not None
        text = re.sub(r"</?conversation_part[^>]*>", "\n", newest(request))
        sentences = dict.fromkeys(_LEAD.sub("", one.strip()) for one in _SENTENCE.split(text) if len(one.split()) > 3)
        wanted = [one for one in sentences if "remember" in one.lower()]
        wanted += [one for one in reversed(sentences) if one not in wanted]
        kept: list[str] = []
        for sentence in wanted:
            if sum(len(one.split()) for one in kept) + len(sentence.split()) <= int(limit[1]):
                kept.append(sentence)
        return say("Facts and identifiers:\n" + "\n".join(f"- {one}" for one in kept), size=200)

    return reply


async def test_F5_a_fact_of_turn_3_stands_in_the_request_of_turn_60_as_the_endpoint_got_it(
    bed: Bed, model: ScriptedModel
) -> None:
    seed = int(os.environ.get("SEED") or secrets.randbelow(1_000_000))
    sys.stdout.write(f"SEED={seed}\n")
    random = Random(seed)
    fact = f"{random.choice('QXZ')}{random.randint(1_000, 9_999)}-{random.choice(_WORDS)}"
    model.script(otherwise=copying(random))
    pipeline = bed.pipeline(config={"context-window-tokens": WINDOW, "advanced-settings": True})
    said: list[str] = []
    async with bed.chat(pipeline) as chat:
        for turn in range(1, TURNS + 1):
            told = f"Please remember that the vault opens with {fact}. " if turn == 3 else ""
            said.append(f"{told}This is turn {turn} of the talk. {prose(random, 80)}")
            shown = await chat.ask(said[-1], seconds=120)
            assert shown.answer, f"turn {turn} got no answer"
            assert "conversation_" not in shown.answer
        rows = bed.records.transcript(chat.conversation_id)
        runs = bed.records.runs(chat.conversation_id)
    assert [run.status for run in runs] == ["completed"] * TURNS
    assert [row.text for row in rows if row.role == "user"] == said
    requests = model.requests
    await assert_all_legal_and_within(requests)
    answers = [request for request in requests if not is_summary(request)]
    assert len(answers) == TURNS
    assert [
        turn for turn, (request, text) in enumerate(zip(answers, said, strict=True), 1) if request.holds(text) != 1
    ] == []
    summaries = len(requests) - len(answers)
    assert 2 <= summaries <= TURNS // 3, "a summary serves several turns"
    assert_remembered(answers[-1], fact)


async def assert_all_legal_and_within(requests: list[Request]) -> None:
    tokenizer = await load_tokenizer()
    budget = Budget.of(WINDOW, 16_384).input
    for request in requests:
        assert violations(request.messages, request.body.get("tools") or None) == []
        assert sum(tokenizer.estimate(text) for _, text in request.texts) <= budget
        assert not (is_summary(request) and request.body.get("tools"))


def assert_remembered(last: Request, fact: str) -> None:
    """The fact stands in the summary, and the turn it was said in is long gone from the conversation."""
    summary = SUMMARY.search(last.texts[0][1])
    assert summary is not None
    assert fact in summary[1]
    assert sum(text.count("This is turn 3 of the talk.") for role, text in last.texts if role != "system") == 0


async def test_F6_a_new_conversation_knows_nothing_of_the_one_before(bed: Bed, model: ScriptedModel) -> None:
    random = Random(7)
    model.script(otherwise=copying(random))
    pipeline = bed.pipeline(config={"context-window-tokens": 2_000, "advanced-settings": True})
    async with bed.chat(pipeline) as chat:
        for turn in range(8):
            await chat.ask(f"Please remember the number 4711-{turn}. {prose(random, 150)}", seconds=120)
        assert any(SUMMARY.search(request.texts[0][1]) for request in model.requests)
    async with bed.chat(pipeline) as chat:
        await chat.ask("Hello, who are you?", seconds=120)
    assert model.requests[-1].holds("4711-") == 0
