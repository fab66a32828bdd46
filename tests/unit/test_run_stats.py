"""The line a bot's owner reads about a run: its words, its counts, and where it stands among the last events."""

from __future__ import annotations

import pytest

from runner.host.events import Answer, Completed, Event, Failed, Log, Usage
from runner.run.run_stats import Tally, accounted, outcome_of

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
