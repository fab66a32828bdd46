"""How a run ends: which last events tell what happened to the person in the chat and to the bot's owner (C6, C8, G2).

Pure: an outcome and the visible text go in, the last events come out.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from config.notices import Notice
from runner.channel.outbox import FRAME_BUDGET, wire_bytes
from runner.channel.visible import Visible
from runner.conversation.cut import head
from runner.host.errors import (
    AllModelsFailed,
    InputTooLarge,
    ModelTrouble,
    NoUsableModel,
    RunCancelled,
    RunFault,
    TimeIsUp,
)
from runner.host.events import Answer, Completed, Event, Failed, Json, Log, Usage
from runner.loop.turn import BrokenOff, StepTimedOut
from runner.run.run_stats import CANCELLED

Say = Callable[..., str]
"""A notice in the language of the chat: `say(Notice.X, name=value)`."""

_WORDS_LIMIT = 4_000
"""Characters of a failure's text: the Host's own errors are cut there, too."""

_TOO_LARGE = {
    "system prompt": Notice.PROMPT_TOO_LARGE,
    "newest message": Notice.MESSAGE_TOO_LARGE,
    "list of tools": Notice.TOOLS_TOO_LARGE,
    "pictures": Notice.PICTURES_TOO_LARGE,
    "knowledge": Notice.KNOWLEDGE_TOO_LARGE,
}


def answered(
    visible: Visible,
    say: Say,
    usage: Usage | None,
    *,
    notes: tuple[str, ...] = (),
    record: Mapping[str, Json] | None = None,
    file_ids: tuple[str, ...] = (),
    finish_reason: str = "stop",
) -> tuple[Event, ...]:
    """The whole visible text as the one completed message, then the end. An empty answer becomes a sentence."""
    for note in notes:
        visible.note(note)
    if not visible.shown:
        visible.note(say(Notice.EMPTY_ANSWER))
    text, record = fitted(visible.text, record, say(Notice.TRANSPORT_LIMIT_NOTE))
    return (Answer(text, record, file_ids), Completed(finish_reason, usage))


def stopped(
    outcome: BaseException,
    visible: Visible,
    say: Say,
    usage: Usage | None,
    record: Mapping[str, Json] | None = None,
    file_ids: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> tuple[Event, ...]:
    """The last events of a run that could not end by itself; what its tools said and made is not lost for that.

    `notes` follow the sentence on how it ended, where there is an answer.
    """
    if isinstance(outcome, RunCancelled):
        return _cancelled(visible, say, usage, record, notes)
    log = Log(_owner_words(outcome)[:_WORDS_LIMIT], "error")
    notice = _notice_for(outcome, visible, say)
    if notice is None:
        return (log, _failed(outcome, usage))
    if notice:
        visible.note(notice)
    return (log, *answered(visible, say, usage, notes=notes, record=record, file_ids=file_ids, finish_reason="error"))


def ran_out_of_time(outcome: BaseException) -> bool:
    """Whether it was a limit of the runner's own that ended the run: that of the run, or that of a step (N4)."""
    if isinstance(outcome, AllModelsFailed):
        return isinstance(outcome.failures[-1], StepTimedOut)
    return isinstance(outcome, TimeIsUp)


def hint(outcome: BaseException, say: Say) -> str | None:
    """What the person reads when a run fails where no Host shows a hint of its own (J2); None: they stopped it."""
    if isinstance(outcome, RunCancelled):
        return None
    if isinstance(outcome, AllModelsFailed):
        return say(Notice.ALL_MODELS_FAILED, reason=outcome.failures[-1].cause.value)
    return say(Notice.FAILED, reason=outcome.code if isinstance(outcome, RunFault) else "runner.internal")


_STEP = 4_096


def fitted(text: str, record: Mapping[str, Json] | None, cut_note: str) -> tuple[str, Mapping[str, Json] | None]:
    """Text and record within one frame of the wire: the record goes first, then the end of the text (C6)."""
    room = FRAME_BUDGET - wire_bytes(text)
    if room >= 0:
        return text, record if record is None or wire_bytes(record) <= room else None
    note = f"\n\n{cut_note}"
    end = _beginning(text, FRAME_BUDGET - wire_bytes(note))
    near = max(0, end - _STEP)  # looking for the border of a grapheme costs what there is to look at
    return text[:near] + head(text[near:], end - near) + note, None


def _beginning(text: str, budget: int) -> int:
    """How many characters of the text take `budget` bytes on the wire. Goes over the text once: it may be long (Sm)."""
    low = 0
    for step in (_STEP, 1):
        while low < len(text) and (more := wire_bytes(text[low : low + step]) - wire_bytes("")) <= budget:
            low, budget = low + step, budget - more
    return min(low, len(text))


def _cancelled(
    visible: Visible, say: Say, usage: Usage | None, record: Mapping[str, Json] | None, notes: tuple[str, ...]
) -> tuple[Event, ...]:
    """A harmless result first, so that the Host sees its own flag and marks the run cancelled."""
    if visible.shown:
        for note in (say(Notice.STOPPED_NOTE), *notes):
            visible.note(note)
        first: Event = Answer(*fitted(visible.text, record, say(Notice.TRANSPORT_LIMIT_NOTE)))
    else:
        first = Log("stopped on request before anything was said")
    return (first, Failed("the run was stopped on request", CANCELLED, usage=usage))


def _notice_for(outcome: BaseException, visible: Visible, say: Say) -> str | None:
    """What the person in the chat must know; None when the Host's own hint says enough (C8), "" when it was said."""
    if isinstance(outcome, TimeIsUp):
        return say(Notice.TIME_LIMIT_NOTE if visible.shown else Notice.TIME_LIMIT)
    if isinstance(outcome, NoUsableModel):
        return say(Notice.NO_MODEL)
    if isinstance(outcome, InputTooLarge):
        return say(_TOO_LARGE.get(outcome.part, Notice.MESSAGE_TOO_LARGE))
    if isinstance(outcome, BrokenOff):
        return ""
    if isinstance(outcome, AllModelsFailed):
        if any(failure.cause is ModelTrouble.FILTERED for failure in outcome.failures):
            return say(Notice.FILTERED_NOTE if visible.shown else Notice.FILTERED)  # what the person can do about it
        last = outcome.failures[-1]
        if isinstance(last, StepTimedOut):
            return say(Notice.TOOK_TOO_LONG, seconds=f"{last.seconds:g}")
        return say(Notice.ALL_MODELS_FAILED, reason=last.cause.value) if visible.shown else None
    return say(Notice.INTERNAL_NOTE) if visible.shown else None


def _failed(outcome: BaseException, usage: Usage | None) -> Failed:
    if isinstance(outcome, RunFault):
        return Failed(str(outcome)[:_WORDS_LIMIT], outcome.code, outcome.retryable, usage)
    return Failed(_owner_words(outcome)[:_WORDS_LIMIT], "runner.internal", usage=usage)


def _owner_words(outcome: BaseException) -> str:
    if isinstance(outcome, RunFault):
        return f"{outcome.code}: {outcome}"
    if isinstance(outcome, TimeIsUp):
        return "runner.time_limit: the run's own time limit passed; raise `timeout`, or use a faster model."
    if isinstance(outcome, BrokenOff):
        return f"runner.broken_off: {outcome}"
    return f"runner.internal: {type(outcome).__name__}{_place_of(outcome)}; please report this with the log around it."


def _place_of(outcome: BaseException) -> str:
    """Where it happened. Its own words may quote what was said, so they do not go into the log."""
    frames = [frame for frame, _ in traceback.walk_tb(outcome.__traceback__)]
    if not frames:
        return ""
    code = frames[-1].f_code
    return f" in {Path(code.co_filename).name}, {code.co_name}, line {frames[-1].f_lineno}"
