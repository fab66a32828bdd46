"""What is remembered between runs, whatever happens to chat, state and rows meanwhile (F6, J5, Q4)."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from runner.context import checkpoint as checkpoints
from runner.context.checkpoint import order
from tests.host import Fault, Model, ModelRequest, Reply, RunRecord, Tool, ToolCall

from .long_chats import (
    CHAT,
    FACT,
    SHOWING,
    assert_within,
    budget_of,
    chats,
    chatter,
    copied,
    fact,
    model_that,
    nowhere,
    prose,
    stored,
    summaries,
    summary_in,
    window,
)
from .scenes import assert_sound, host_with

WINDOW = 8_000


class Scene:
    """A chat of about 10,000 tokens in a window of 8,000. `told`: facts that stood in a request for a summary."""

    def __init__(self, rows: int = 40, **given: Any) -> None:
        self.told: set[str] = set()
        models = [Model("m1", default=model_that("Noted.", self.summary))]
        given.setdefault("chat_seconds", SHOWING)
        self.host = host_with(models=models, config=window(WINDOW, date_grounding=False), **given)
        self.facts = chatter(self.host, Random(7), rows, 190)

    def summary(self, request: ModelRequest) -> str:
        self.told |= set(FACT.findall(request.text))
        return copied(request)

    async def say(self, text: str = "And now?") -> RunRecord:
        run = await self.host.say(text)
        assert (run.status, run.final_text) == ("completed", "Noted.")
        assert_within(run, budget_of(WINDOW))
        assert nowhere(self.host, self.told) == []
        return run

    async def on(self, runs: int) -> None:
        """So many runs more, with something to say."""
        for turn in range(runs):
            await self.say(f"Turn {turn} is about KEY-500-{turn}. {prose(Random(turn), 150)}")


def saves(run: RunRecord) -> list[Any]:
    """What a run wrote under the checkpoint's key."""
    return [call.data["value"] for call in run.calls.of("state_set") if call.data["key"] == checkpoints.KEY]


async def test_F6_the_next_run_pages_forward_from_the_checkpoint_and_reads_no_row_twice() -> None:
    scene = Scene()
    await scene.say()
    while (checkpoint := stored(scene.host)) is None or checkpoint.gaps:
        await scene.say()
    assert checkpoint.covers_until is not None
    second = await scene.say()
    pages = [call.data for call in second.calls.of("history_page")]
    assert pages[0]["after_cursor"] == checkpoint.covers_until
    assert second.calls.count("state_get") == 0 or summaries(second)
    said = "\n".join(str(message["content"]) for message in chats(second)[0].messages if message["role"] != "system")
    for row in scene.host.transcript():
        if row.role == "user" and row.seq <= order(checkpoint.covers_until):
            assert said.count(str(row.text)) <= 1, "once, as what was said last (L4)"
        elif row.seq <= order(checkpoint.covers_until):
            assert row.text not in said
    assert checkpoint.summary.strip() in (summary_in(chats(second)[0]) or "")


async def test_F6_a_checkpoint_is_written_once_a_run_however_often_it_was_compacted() -> None:
    def answer(_: ModelRequest) -> Reply:
        done = len(tool.calls)
        return Reply("Step. ", tool_calls=[ToolCall("look", {"n": done})]) if done < 40 else Reply("Done.")

    tool = Tool("look", takes_dict=True, fn=lambda _: f"KEY-800-{len(tool.calls)}. {prose(Random(1), 120)}")
    host = host_with(models=[Model("m1", default=model_that(answer))], tools=[tool], config=window(4_000))
    chatter(host, Random(7), 10, 60)
    run = await host.say("Look it all up, please.")
    assert len(summaries(run)) >= 2
    assert len(saves(run)) == 1
    checkpoint = stored(host)
    assert checkpoint is not None and checkpoint.covers_until is not None
    newest_before = [row for row in host.transcript() if row.text.startswith("Row ")][-1]
    assert order(checkpoint.covers_until) <= newest_before.seq, "steps of a run are no rows"


async def test_F6_what_a_run_folds_after_a_follow_up_made_it_go_on_is_saved_too() -> None:
    def answer(_: ModelRequest) -> Reply:
        done = len(tool.calls)
        if not host.runs[0].steering and not done:
            assert host.steer("Now look it all up.")
            return Reply("First.")
        return Reply("Step. ", tool_calls=[ToolCall("look", {"n": done})]) if done < 20 else Reply("Done.")

    tool = Tool("look", takes_dict=True, fn=lambda _: f"KEY-800-{len(tool.calls)}. {prose(Random(1), 120)}")
    host = host_with(models=[Model("m1", default=model_that(answer))], tools=[tool], config=window(4_000))
    chatter(host, Random(7), 40, 60)
    run = await host.say("Hello.")
    first, *_, last = (checkpoints.read(value) for value in saves(run))
    assert first is not None and last is not None and last == stored(host)
    assert order(last.covers_until or "0") > order(first.covers_until or "0")
    assert len(saves(run)) == 2
    await assert_sound(host, run)


async def test_F6_a_run_that_compacts_nothing_reads_and_writes_no_state() -> None:
    host = host_with(replies=["Hello."])
    run = await host.say("hi")
    assert run.calls.of("state_get", "state_set") == []


async def test_F6_after_a_reset_nothing_of_the_old_conversation_is_left() -> None:
    scene = Scene()
    await scene.say()
    scene.host.reset()
    run = await scene.say("A new beginning.")
    (request,) = run.requests
    assert summary_in(request) is None
    assert "KEY-" not in request.text
    await scene.on(30)
    assert not any(
        fact in request.text for run in scene.host.runs[2:] for request in run.requests for fact in scene.facts
    )


@pytest.mark.parametrize("moment", ["state_get", "state_set"])
async def test_F6_a_reset_while_a_run_saves_leaves_no_old_words_in_the_new_conversation(moment: str) -> None:
    scene = Scene()
    await scene.say()
    scene.host.when(moment, scene.host.reset)
    for turn in range(30):
        run = await scene.host.say(f"Turn {turn}. {prose(Random(turn), 150)}")
        if run.calls.of(moment):
            break
    if moment == "state_get":
        assert stored(scene.host) is None
    run = await scene.host.say("A new beginning.")
    assert run.status == "completed"
    if moment == "state_get":
        assert "KEY-" not in run.requests[0].text
    assert_within(run, budget_of(WINDOW))


async def test_F6_a_reset_during_the_very_first_compaction_leaves_no_old_words_either() -> None:
    scene = Scene()
    scene.host.when("state_get", scene.host.reset)
    await scene.host.say("And now?")
    run = await scene.host.say("A new beginning.")
    assert "KEY-" not in run.requests[0].text


@pytest.mark.parametrize("kept", [0, 1, 7])
async def test_F6_rows_that_retention_removed_close_their_gap_and_harm_nothing(kept: int) -> None:
    scene = Scene(rows=300)
    await scene.say()
    checkpoint = stored(scene.host)
    assert checkpoint is not None and checkpoint.gaps
    rows = scene.host.world.transcript.rows
    del rows[: len(rows) - kept]
    for turn in range(6):
        await scene.say(f"Turn {turn}")
    checkpoint = stored(scene.host)
    assert checkpoint is not None and checkpoint.gaps == ()
    assert checkpoint.summary


async def test_F6_rows_of_another_runner_in_the_chat_are_part_of_it() -> None:
    scene = Scene()
    await scene.say()
    foreign = {"runner_id": "plugin:somebody/Else/default"}
    for number in range(60):
        role = "assistant" if number % 2 else "user"
        text = f"Elsewhere {number}: KEY-900-{number}. {prose(Random(number), 60)}"
        scene.host.world.transcript.skip(3)
        scene.host.world.transcript.add(CHAT, role, text, {"role": role, "content": text}, metadata=foreign)
    run = await scene.say()
    assert "KEY-900-59" in chats(run)[0].text
    await scene.on(12)
    checkpoint = stored(scene.host)
    assert checkpoint is not None and checkpoint.gaps == ()
    assert {f"KEY-900-{number}" for number in range(50)} <= scene.told


async def test_F6_hundreds_of_rows_since_the_checkpoint_are_folded_or_stay_in_a_gap() -> None:
    scene = Scene()
    while (checkpoint := stored(scene.host)) is None or checkpoint.gaps:
        await scene.say()
    chatter(scene.host, Random(9), 300, 20)  # another runner had the chat for a while
    await scene.say()
    await scene.on(12)
    checkpoint = stored(scene.host)
    assert checkpoint is not None and not checkpoint.gaps


async def test_F3_messages_that_got_no_answer_are_summarised_like_any_others() -> None:
    """Forty-five of them, 12,000 tokens: together with the new one they were one turn that fits no request."""
    scene = Scene(rows=0)
    random = Random(1)
    for number in range(45):
        scene.host.remember(("user", f"Row {number} is about {fact(random, number)}. {prose(random, 190)}"))
    run = await scene.say()
    assert summaries(run) and set(chats(run)[0].roles) == {"system", "user", "assistant"}
    checkpoint = stored(scene.host)
    assert checkpoint is not None and checkpoint.gaps
    await scene.on(12)
    checkpoint = stored(scene.host)
    assert checkpoint is not None and not checkpoint.gaps


@pytest.mark.parametrize("role", ["user", "assistant"])
async def test_F6_messages_of_one_side_leave_the_fetch_limit_into_the_summary(role: str) -> None:
    """A group bot that seldom speaks, or one whose runs answer events: four hundred short rows, and room for all."""
    told: set[str] = set()

    def summary(request: ModelRequest) -> str:
        told.update(FACT.findall(request.text))
        return copied(request)

    models = [Model("m1", default=model_that("Noted.", summary))]
    host = host_with(models=models, config=window(200_000), chat_seconds=SHOWING)
    random = Random(1)
    for number in range(400):
        host.remember((role, f"{prose(random, 5)} {fact(random, number)}."))
    for _ in range(14):
        run = await host.say("And now?")
        assert run.final_text == "Noted."
        assert nowhere(host, told) == []
    checkpoint = stored(host)
    assert checkpoint is not None and checkpoint.covers_until is not None and not checkpoint.gaps
    assert len(told) >= 350


async def test_J5_runs_of_one_chat_at_the_same_time_lose_no_row() -> None:
    told: set[str] = set()

    def summary(request: ModelRequest) -> Reply:
        told.update(FACT.findall(request.text))
        return Reply(copied(request), delay=random.random() / 20)

    random = Random(3)
    settings = window(WINDOW, date_grounding=False, agent_reply="auto")
    host = host_with(models=[Model("m1", default=model_that("Noted.", summary))], config=settings, mode="agent")
    chatter(host, random, 60, 150)
    for turn in range(12):
        going = [
            host.start(f"Turn {turn}, voice {voice}: KEY-{turn}-{voice}. {prose(random, 120)}") for voice in range(3)
        ]
        for run in [await one.wait() for one in going]:
            assert run.status == "completed", run.error
            assert_within(run, budget_of(WINDOW))
        assert nowhere(host, told) == []
    assert sum(len(saves(run)) for run in host.runs) >= 3
    assert stored(host) is not None


GOOD: dict[str, Any] = {
    "version": 1,
    "summary": "Goal:\n- FOREIGN",
    "covers_from": "1",
    "covers_until": "10",
    "gaps": [],
    "turns": 1,
    "summaries": 1,
    "time": 1.0,
    "windows": {},
    "notes": {},
}
BROKEN: dict[str, Any] = {
    "null": None,
    "text": "FOREIGN",
    "a list": ["FOREIGN"],
    "a number": 7,
    "an empty object": {},
    "an older version": {**GOOD, "version": 0},
    "a newer version": {**GOOD, "version": 2},
    "a foreign key": {**GOOD, "FOREIGN": 1},
    "a cursor of another kind": {**GOOD, "covers_until": "FOREIGN"},
    "a cursor as a number": {**GOOD, "covers_until": 10},
    "ends before it begins": {**GOOD, "covers_from": "11"},
    "gaps newer than the summary": {**GOOD, "gaps": [{"after": "3", "before": "900"}]},
    "a gap without an end": {**GOOD, "gaps": [{"after": "3"}]},
    "a summary beyond belief": {**GOOD, "summary": "FOREIGN " * 20_000},
    "a window of nothing": {**GOOD, "windows": {"m1": 0}},
    "a window of words": {**GOOD, "windows": {"m1": "FOREIGN"}},
    "a time that is none": {**GOOD, "time": "FOREIGN"},
}


@pytest.mark.parametrize("value", BROKEN.values(), ids=BROKEN.keys())
async def test_F6_a_broken_foreign_or_outdated_checkpoint_is_ignored_and_replaced(value: Any) -> None:
    scene = Scene()
    scene.host.state.set("conversation", CHAT, checkpoints.KEY, value)
    run = await scene.host.say("And now?")
    assert (run.status, run.final_text) == ("completed", "Noted.")
    assert not any("FOREIGN" in request.text for request in run.requests)
    assert_within(run, budget_of(WINDOW))
    checkpoint = stored(scene.host)
    assert checkpoint is not None and "KEY-" in checkpoint.summary
    await assert_sound(scene.host, run)


async def test_F6_a_checkpoint_that_claims_more_than_there_is_is_outdated_and_replaced() -> None:
    """Cursors of another transcript (a restored backup, or numbers that began anew): all rows here are newer."""
    scene = Scene()
    scene.host.state.set(
        "conversation", CHAT, checkpoints.KEY, {**GOOD, "summary": "outdated words", "covers_until": "999999"}
    )
    run = await scene.host.say("And now?")
    assert (run.status, run.final_text) == ("completed", "Noted.")
    assert chats(run)[0].last_user.endswith("And now?")
    assert scene.facts[-2] in chats(run)[0].text and "outdated words" not in chats(run)[0].text
    checkpoint = stored(scene.host)
    assert checkpoint is not None and order(checkpoint.covers_until or "0") < 100
    await scene.say()


WITHOUT = pytest.mark.parametrize("withheld", [["state"], ["history_page"], ["state", "history_page"]], ids=str)


@WITHOUT
async def test_F6_without_the_state_or_the_history_api_a_run_does_with_what_it_has(withheld: list[str]) -> None:
    scene = Scene(withheld_apis=withheld)
    for _ in range(2):
        run = await scene.host.say("And now?")
        assert (run.status, run.final_text) == ("completed", "Noted.")
        assert run.calls.of("state_get", "state_set") == []
        assert_within(run, budget_of(WINDOW))
    summarised = [len(summaries(run)) for run in scene.host.runs]
    assert summarised == ([0, 0] if "history_page" in withheld else [1, 1])


async def test_F6_without_state_no_row_that_was_read_is_left_out_of_the_summary() -> None:
    scene = Scene(withheld_apis=["state"])
    run = await scene.host.say("And now?")
    shown = chats(run)[0].text + summaries(run)[0].text
    assert [fact for fact in scene.facts if fact not in shown] == []


FAULTS = [Fault.error(), Fault.timeout(), Fault.hang(0.05), Fault.drop(), Fault.lost(), Fault.malformed()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
@pytest.mark.parametrize("action", ["state_get", "state_set"])
async def test_F6_a_run_whose_save_fails_answers_and_the_next_one_folds_again(action: str, fault: Fault) -> None:
    scene = Scene()
    scene.host.fail(action, fault)
    run = await scene.say()
    assert any(call.fault for call in run.calls.of(action))
    assert fault.kind == "malformed" or any("checkpoint" in line for line in run.logs)
    await assert_sound(scene.host, run)
    again = await scene.say()
    assert stored(scene.host) is not None
    assert "KEY-" in (summary_in(chats(again)[0]) or "")
    await assert_sound(scene.host, again)


async def test_F6_a_run_that_fails_after_a_refusal_remembers_the_window_all_the_same() -> None:
    host = host_with(models=[Model("m1", default=model_that("Here."), window=600)], config=window(WINDOW))
    chatter(host, Random(7), 10, 60)
    host.config["prompt"] = [{"role": "system", "content": prose(Random(1), 700)}]
    host.world.prompt[:] = []
    run = await host.say("And now?")
    assert run.finish_reason == "error"
    checkpoint = stored(host)
    assert checkpoint is not None and list(checkpoint.windows) == ["m1"]


async def test_F6_other_keys_of_the_conversation_are_left_alone() -> None:
    scene = Scene()
    scene.host.state.set("conversation", CHAT, "somebody.else", {"kept": True})
    await scene.say()
    assert scene.host.state.get("conversation", CHAT, "somebody.else") == {"kept": True}
    keys, _ = scene.host.state.keys("conversation", CHAT)
    assert keys == [checkpoints.KEY, "somebody.else"] or set(keys) == {checkpoints.KEY, "somebody.else"}


async def test_F6_a_hanging_save_does_not_hold_a_failed_run_open() -> None:
    host = host_with(models=[Model("m1", default=model_that("Here."), window=600)], config=window(WINDOW))
    host.config["prompt"] = [{"role": "system", "content": prose(Random(1), 700)}]
    host.world.prompt[:] = []
    host.fail("state_get", Fault.hang())
    async with asyncio.timeout(20):
        run = await host.say("And now?")
    assert run.finish_reason == "error"


@pytest.mark.parametrize("action", ["state_get", "state_set"])
async def test_L9_while_saving_fails_a_summary_is_not_written_anew_in_each_run(action: str) -> None:
    scene = Scene(chat_seconds=0.0)
    scene.host.fail(action, Fault.error(), times=None)
    runs = [await scene.host.say(f"Turn {turn}") for turn in range(40)]
    assert {run.status for run in runs} == {"completed"}
    assert 1 <= sum(len(summaries(run)) for run in runs) <= 10
