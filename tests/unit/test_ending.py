"""C6, C8, G2: the last events of a run, for the person in the chat and for the owner."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.locales import Locale
from config.notices import Notice, say
from runner.channel.outbox import FRAME_BUDGET, wire_bytes
from runner.channel.visible import Visible
from runner.host.errors import (
    AllModelsFailed,
    CountingUnavailable,
    InputTooLarge,
    ModelFailed,
    ModelTrouble,
    NoUsableModel,
    PromptMalformed,
    RunCancelled,
    RunFault,
    TimeIsUp,
)
from runner.host.events import Answer, Completed, Event, Failed, Json, Log, Usage
from runner.loop.turn import BrokenOff
from runner.run.ending import answered, fitted, stopped
from tests.unit.border import english

USAGE = Usage(1, 2, 3)


def visible(text: str = "") -> Visible:
    shown = Visible()
    shown.begin_turn()
    shown.add(text)
    return shown


def all_failed(*causes: ModelTrouble) -> AllModelsFailed:
    return AllModelsFailed(tuple(ModelFailed(f"m{place}", cause, "why") for place, cause in enumerate(causes)))


def split(events: tuple[Event, ...]) -> tuple[list[Log], list[Answer], Event]:
    return (
        [event for event in events if isinstance(event, Log)],
        [event for event in events if isinstance(event, Answer)],
        events[-1],
    )


def test_C6_an_answer_is_one_completed_message_and_then_the_end_with_the_usage() -> None:
    assert answered(visible("hi"), english, USAGE) == (Answer("hi"), Completed("stop", USAGE))


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_C6_an_empty_answer_becomes_a_visible_sentence(text: str) -> None:
    answer, _ = answered(visible(text), english, None)
    assert answer == Answer(english(Notice.EMPTY_ANSWER))


def test_C6_notes_of_the_runner_are_part_of_the_text() -> None:
    answer, _ = answered(visible("half"), english, None, notes=(english(Notice.LENGTH_LIMIT_NOTE),))
    assert answer == Answer(f"half\n\n{english(Notice.LENGTH_LIMIT_NOTE)}")


@pytest.mark.parametrize("locale", list(Locale))
@pytest.mark.parametrize(
    "outcome",
    [
        NoUsableModel("x"),
        TimeIsUp(),
        *(InputTooLarge(part, "s", 2, 1) for part in ("system prompt", "newest message", "list of tools", "knowledge")),
    ],
    ids=lambda value: getattr(value, "part", type(value).__name__),
)
def test_C8_what_the_person_must_know_is_the_one_completed_message(outcome: Exception, locale: Locale) -> None:
    logs, answers, last = split(stopped(outcome, visible(), partial(_say_in, locale), USAGE))
    assert len(answers) == 1 and answers[0].text.strip()
    assert last == Completed("error", USAGE)
    assert len(logs) == 1 and logs[0].level == "error"


def _say_in(locale: Locale, notice: Notice, **values: object) -> str:
    return say(notice, locale, **values)


@pytest.mark.parametrize(
    "outcome", [PromptMalformed("x"), CountingUnavailable("x"), all_failed(ModelTrouble.AUTH), KeyError("bug")]
)
def test_C8_a_failure_only_the_owner_can_mend_names_its_code_and_keeps_the_usage(outcome: Exception) -> None:
    logs, answers, last = split(stopped(outcome, visible(), english, USAGE))
    assert answers == [] and isinstance(last, Failed) and last.usage == USAGE
    assert last.code == (outcome.code if isinstance(outcome, RunFault) else "runner.internal")
    assert last.code in logs[0].text


@pytest.mark.parametrize(
    ("causes", "retryable"),
    [
        ([ModelTrouble.AUTH], False),
        ([ModelTrouble.OTHER, ModelTrouble.BAD_REQUEST], False),
        ([ModelTrouble.OVERFLOW, ModelTrouble.EMPTY], False),
        ([ModelTrouble.TIMEOUT], True),
        ([ModelTrouble.AUTH, ModelTrouble.NETWORK], True),
        ([ModelTrouble.RATE_LIMIT, ModelTrouble.AUTH], True),
    ],
)
def test_C8_retryable_only_for_network_timeouts_and_rate_limits(causes: list[ModelTrouble], retryable: bool) -> None:
    last = stopped(all_failed(*causes), visible(), english, None)[-1]
    assert isinstance(last, Failed) and last.retryable is retryable


@pytest.mark.parametrize(
    "outcome",
    [
        TimeIsUp(),
        all_failed(ModelTrouble.NETWORK),
        KeyError("bug"),
        NoUsableModel("x"),
    ],
)
def test_C6_what_was_shown_stays_when_a_run_stops_and_the_note_is_part_of_it(outcome: Exception) -> None:
    _, answers, last = split(stopped(outcome, visible("half an answer"), english, USAGE))
    assert len(answers) == 1 and answers[0].text.startswith("half an answer\n\n")
    assert len(answers[0].text) > len("half an answer\n\n")
    assert last == Completed("error", USAGE)


def test_C1_a_reply_that_broke_off_was_marked_already_and_is_completed_as_it_stands() -> None:
    broken = BrokenOff(ModelFailed("m", ModelTrouble.NETWORK, "x"), "half")
    _, answers, last = split(stopped(broken, visible("half [broken off]"), english, USAGE))
    assert [answer.text for answer in answers] == ["half [broken off]"]
    assert last == Completed("error", USAGE)


def test_G2_a_stop_sends_the_visible_text_marked_and_then_fails_as_cancelled() -> None:
    first, last = stopped(RunCancelled(), visible("half"), english, USAGE)
    assert first == Answer(f"half\n\n{english(Notice.STOPPED_NOTE)}")
    assert isinstance(last, Failed) and (last.code, last.retryable, last.usage) == ("cancelled", False, USAGE)


@pytest.mark.parametrize("text", ["", " \n"])
def test_G2_a_stop_before_anything_was_said_logs_first(text: str) -> None:
    first, last = stopped(RunCancelled(), visible(text), english, None)
    assert isinstance(first, Log) and isinstance(last, Failed) and last.code == "cancelled"


RECORD: Mapping[str, Json] = {"calls": [{"name": "f", "result": "中" * 100}]}


@settings(max_examples=30)
@given(st.sampled_from(["a", "中", "😀", "\n", "\x00"]), st.integers(0, 200_000), st.booleans())
def test_C6_text_and_record_fit_one_frame_and_the_record_goes_first(letter: str, size: int, with_record: bool) -> None:
    text, record = fitted(letter * size, RECORD if with_record else None, "[cut]")
    used = wire_bytes(text) + (wire_bytes(record) if record is not None else 0)
    assert used <= FRAME_BUDGET
    if text != letter * size:
        assert text.endswith("\n\n[cut]") and record is None
        assert wire_bytes(text) > FRAME_BUDGET - 50, "no more is cut than has to be"
    if record is None and with_record:
        assert wire_bytes(letter * size) + wire_bytes(RECORD) > FRAME_BUDGET


def test_C6_a_small_answer_keeps_text_and_record_untouched() -> None:
    assert fitted("hi", RECORD, "[cut]") == ("hi", RECORD)
    assert fitted("hi", None, "[cut]") == ("hi", None)


async def test_Q4_a_fault_while_ending_still_ends_the_run() -> None:
    """The last resort itself: a part that no notice is written for."""
    events = stopped(InputTooLarge("history", "context-window-tokens", 2, 1), Visible(), english, None)
    assert isinstance(events[-1], Completed | Failed)


def test_C6_an_answer_is_not_cut_inside_a_grapheme() -> None:
    family = "👨‍👩‍👧"
    text, _ = fitted(family * 40_000, None, "[cut]")
    assert text.removesuffix("\n\n[cut]").replace(family, "") == ""
