"""C6, C8, G2, G3: the last events of a run, its own deadline, and the line a bot's owner reads about it."""

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
from runner.host.deadline import Deadline, deadline_for
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
from runner.run.run_stats import Tally, accounted, outcome_of
from tests.unit.border import english

# C6, C8, G2: the last events of a run, for the person in the chat and for the owner.

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


# The line a bot's owner reads about a run: its words, its counts, and where it stands among the last events.

ANSWER = Answer("hi")
STOPPED = Failed("stopped", "cancelled")


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ((ANSWER, Completed()), "answered"),
        ((Completed(),), "ended without words"),
        ((ANSWER, Completed("error")), "ended with a notice"),
        ((Log("why"), Failed("why", "runner.no_model")), "failed (runner.no_model)"),
        ((ANSWER, STOPPED), "stopped on request"),
    ],
)
def test_C8_the_outcome_is_told_by_the_last_events(last: tuple[Event, ...], words: str) -> None:
    assert outcome_of(last) == words


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ((ANSWER, Completed("error")), "out of time"),
        ((Completed(),), "out of time"),
        ((STOPPED,), "stopped on request"),
    ],
)
def test_N4_a_run_that_a_time_limit_ended_is_told_as_one(last: tuple[Event, ...], words: str) -> None:
    assert outcome_of(last, out_of_time=True) == words


def test_C8_one_turn_without_tools_needs_no_details() -> None:
    tally = Tally("answered", 1.24, turns={"m1": 1}, usage=Usage(5, 1, 6))
    (line,) = tally.logs()
    counts = "1 model turn, 0 tool calls, 5 tokens in and 1 out, 0 compactions, 0 fallbacks"
    assert line == Log(f"run: answered in 1.2 s: {counts}")


def test_C8_tokens_that_no_provider_counted_are_unknown_and_not_none() -> None:
    assert "tokens unknown" in Tally("answered", turns={"m1": 1}).logs()[0].text


def test_C8_the_details_name_models_and_tools_the_busiest_first_and_not_without_end() -> None:
    tools = {f"tool{number}": 1 for number in range(40)} | {"look": 3}
    line, details = Tally("answered", turns={"m2": 1, "m1": 2}, tools=tools, rounds=4, failed_calls=1).logs()
    assert "3 model turns, 43 tool calls in 4 rounds (1 failed)" in line.text
    assert details.level == "debug"
    assert "(m1 2, m2 1)" in details.text
    assert "(look 3, tool0 1, " in details.text
    assert "29 more" in details.text
    assert len(details.text) < 1_000


def test_C8_further_counters_of_the_providers_are_among_the_details() -> None:
    usage = Usage(5, 1, 6, {"cached_tokens": 4})
    details = Tally("answered", turns={"m1": 2}, usage=usage).logs()[1]
    assert details.text.endswith("; cached_tokens 4")


def test_G2_the_line_of_a_stopped_run_is_the_harmless_word_or_nothing() -> None:
    logs = (Log("run: …"), Log("more", "debug"))
    assert accounted((Log("stopped before anything was said"), STOPPED), logs) == (logs[0], STOPPED)
    assert accounted((ANSWER, STOPPED), logs) == (ANSWER, STOPPED)


def test_C8_the_line_is_the_last_one_of_the_log() -> None:
    logs, why = (Log("run: …"),), Log("why", "error")
    assert accounted((ANSWER, Completed()), logs) == (*logs, ANSWER, Completed())
    assert accounted((why, Failed("why", "runner.x")), logs) == (why, *logs, Failed("why", "runner.x"))


# G3: the run's own deadline.

SECONDS = st.none() | st.floats(-1e6, 1e6)


def test_G3_without_any_limit_there_is_no_deadline() -> None:
    assert deadline_for(5.0, None, None) == Deadline(None, None)
    assert not Deadline(None, None).is_near(1e9)


@pytest.mark.parametrize(
    ("timeout", "host_left", "end"),
    [
        (300, None, 295.0),
        (None, 300, 295.0),
        (300, 200, 195.0),
        (60, 200, 57.0),
        (60, 61, 57.0),
        (20, None, 18.0),
        (3, None, 1.0),
    ],
)
def test_G3_the_smaller_limit_counts_less_a_margin_of_2_to_5_seconds(
    timeout: float, host_left: float, end: float
) -> None:
    assert deadline_for(0.0, timeout, host_left).end == pytest.approx(end)


@pytest.mark.parametrize(("limit", "wrap_up"), [(300, 265.0), (100, 75.0), (20, 14.0)])
def test_G3_from_20_percent_before_it_at_most_30_seconds_the_run_wraps_up(limit: float, wrap_up: float) -> None:
    deadline = deadline_for(0.0, limit, None)
    assert deadline.wrap_up == pytest.approx(wrap_up)
    assert deadline.is_near(wrap_up) and not deadline.is_near(wrap_up - 0.01)


@given(st.floats(0, 1e6), SECONDS, SECONDS)
def test_G3_every_deadline_lies_ahead_and_before_the_hosts(
    now: float, timeout: float | None, host_left: float | None
) -> None:
    deadline = deadline_for(now, timeout, host_left)
    if deadline.end is None or deadline.wrap_up is None:
        assert timeout is None and host_left is None
        return
    assert now <= deadline.wrap_up <= deadline.end
    assert deadline.end > now, "even a limit in the past leaves a moment to say so"
    shortest = min(limit for limit in (timeout, host_left) if limit is not None)
    if shortest >= 2.2:
        assert deadline.end <= now + shortest - 2 + 1e-6
