"""`make ask`: questions through the real LangBot, and the proof, read back from LangBot's own records, who answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from demo.chat import Chat, Turn
from demo.errors import DemoError
from demo.records import Records, RunRow, TranscriptRow
from demo.stage import Stage
from weights.errors import one_line

_DONE = frozenset({"completed", "failed", "cancelled", "timeout"})


async def ask_all(
    stage: Stage, questions: Sequence[str], answer: Callable[[str], None], say: Callable[[str], None]
) -> None:
    """Ask `questions` one after another in one conversation; `answer` gets each answer's text.

    Raises DemoError when a question has no answer by the plugin's runner.
    """
    records = Records(stage.langbot.database)
    async with Chat(stage.langbot.api, stage.pipeline) as chat:
        for number, question in enumerate(questions):
            say(f"asking: {one_line(question, 100)}")
            turn = await chat.ask(question)
            run, row = await asyncio.to_thread(_proof, stage, records, chat.conversation_id, number, turn)
            say(f"run {run.run_id}, runner {run.runner_id}, {run.status}, usage {run.usage or 'unknown'}")
            say(
                f"transcript row {row.seq} ({row.transcript_id}): {row.role}, {len(row.text)} characters: "
                f"{one_line(row.text, 120)}"
            )
            answer(turn.answer)


def _proof(stage: Stage, records: Records, conversation: str, number: int, turn: Turn) -> tuple[RunRow, TranscriptRow]:
    run = _finished_run(records, conversation, number)
    if run is None:
        shown = f" LangBot said: {one_line(turn.answer, 160)}" if turn.answer else ""
        raise DemoError(f"no runner answered; is {stage.identity.author}/{stage.identity.name} enabled?{shown}")
    if run.runner_id != stage.runner_id:
        raise DemoError(f"{run.runner_id} answered, not {stage.runner_id}")
    if run.status != "completed" or run.finish_reason == "error":
        reason = run.reason or turn.answer or "no reason was given"
        raise DemoError(f"run {run.run_id} of {run.runner_id} failed: {one_line(reason)}")
    row = next(
        (row for row in records.transcript(conversation) if row.run_id == run.run_id and row.role == "assistant"), None
    )
    if row is None:
        raise DemoError(f"run {run.run_id} left no answer in LangBot's transcript")
    if row.text != turn.answer:
        raise DemoError(f"the answer shown is not the one in LangBot's transcript row {row.seq}")
    return run, row


def _finished_run(records: Records, conversation: str, number: int, seconds: float = 10) -> RunRow | None:
    """The run of question `number`, waiting a moment for its last state; None when LangBot started none."""
    end = time.monotonic() + seconds
    while True:
        runs = records.runs(conversation)
        run = runs[number] if len(runs) > number else None
        if run is None or run.status in _DONE or time.monotonic() > end:
            return run
        time.sleep(0.1)
