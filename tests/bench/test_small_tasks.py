"""Q5: the tasks of the bench are judged by their real effect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.small.desk import Desk, calculate, convert, search
from bench.small.play import STANDARD, Played, play
from bench.small.seen import look
from bench.small.tasks import TASKS, Task
from tests.host import ModelRequest, Reply, ToolCall


def perfect(request: ModelRequest) -> Reply:
    """A model that can do every task and writes calls as its provider wants them."""
    seen = look(request)
    assert seen.task is not None
    step = seen.next
    if step is None:
        return Reply(seen.task.answer(seen.done))
    return Reply(tool_calls=[ToolCall(step.tool, step.arguments(seen.done))])


def mute(_: ModelRequest) -> Reply:
    return Reply("")


def boastful(_: ModelRequest) -> Reply:
    """Says that it is done, and does nothing."""
    return Reply("Done, I have taken care of it. The answer is 12.")


async def finished(speaker: object) -> list[Played]:
    return await asyncio.gather(*(play(task, STANDARD, speaker) for task in TASKS))  # type: ignore[arg-type]


async def test_Q5_a_model_that_can_do_them_finishes_all_forty_tasks() -> None:
    played = await finished(perfect)
    assert [one.task for one in played if not one.finished] == []
    assert len(played) == len({one.task for one in played}) == 40
    assert sum(one.rounds for one in played) == sum(len(task.steps) + 1 for task in TASKS)


@pytest.mark.parametrize("speaker", [mute, boastful])
async def test_Q5_a_model_that_does_nothing_finishes_none(speaker: object) -> None:
    assert [one.task for one in await finished(speaker) if one.finished] == []


def test_Q5_a_task_is_not_done_when_another_file_was_changed(tmp_path: Path) -> None:
    task = next(task for task in TASKS if task.id == "write-1")
    desk = Desk(tmp_path)
    desk.write_file("todo.md", "buy milk\ncall Anna\npay rent")
    assert task.check(desk, "")
    desk.write_file("report.txt", "gone")
    assert not task.check(desk, "")


def _given(id: str) -> Task:
    return next(task for task in TASKS if task.id == id)


@pytest.mark.parametrize(
    ("id", "answer", "right"),
    [
        ("calc-1", "It is 4,195.", True),
        ("calc-1", "It is 41950.", False),
        ("calc-1", "It is 14195.", False),
        ("calc-4", "每人 86 元", True),
        ("find-1", "The code is 7734.", True),
        ("find-1", "The code is 7743.", False),
        ("chat-3", "Tuples are immutable.", True),
        ("chat-3", "I have written it down.", False),
    ],
)
def test_Q5_an_answer_counts_by_what_it_says(id: str, answer: str, right: bool, tmp_path: Path) -> None:
    assert _given(id).check(Desk(tmp_path), answer) is right


def test_Q5_chit_chat_with_an_effect_is_not_finished(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.send_message("Bob", "hi")
    assert not _given("chat-1").check(desk, "Hello!")


def test_Q5_the_tools_really_work(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert calculate("(1250 - 375) * 1.06") == "927.5"
    assert convert(3.5, "ounces", "grams").endswith("= 99.223 grams")
    assert "7734" in search("descaling code")
    assert "14:20" in search("产品周会")
    assert search("xyzzy") == "Nothing found."
    with pytest.raises(ValueError, match="only numbers"):
        calculate("__import__('os')")
    with pytest.raises(ValueError, match="only files of this folder"):
        desk.write_file("../outside.txt", "x")
