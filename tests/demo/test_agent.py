"""The agent of the demo and the page about its first answers."""

from __future__ import annotations

from datetime import datetime

import pytest

from config.settings import Settings
from demo.agent import STRONG_OR_WEAK, WEAK
from demo.api import RunnerConfig
from demo.first_questions import CHINESE, ENGLISH, Answered, Question, is_good, page
from everyday.components.tools.declared import declared


@pytest.mark.parametrize(("bound", "profile", "form"), [(WEAK, "small", "guided"), (STRONG_OR_WEAK, "auto", "auto")])
def test_the_form_reads_what_the_demo_binds(bound: RunnerConfig, profile: str, form: str) -> None:
    settings, notes = Settings.read(bound)
    assert (settings.small.profile, settings.small.call_format, notes) == (profile, form, ())
    assert settings.prompt[0]["role"] == "system"


def test_the_questions_name_tools_that_there_are() -> None:
    tools = {tool.name for tool in declared()}
    assert {question.tool for question in (*ENGLISH, *CHINESE)} - {""} <= tools
    assert len(ENGLISH) == len(CHINESE) == 5


def test_a_good_answer_is_right_and_comes_from_the_tool() -> None:
    time, weekday = ENGLISH[1], CHINESE[1]
    now = datetime(2026, 3, 4, 14, 5)
    assert is_good(time, "It is 14:03.", ["current_time"], now)
    assert is_good(time, "It is 2:03 PM.", ["current_time"], now)
    assert not is_good(time, "It is 14:03.", [], now)
    assert not is_good(time, "It is 10:00 AM.", ["current_time"], now)
    assert is_good(weekday, "今天是星期三。", [], now)
    assert not is_good(weekday, "今天是星期二。", [], now)


def test_a_failure_stands_on_the_page_as_what_it_is() -> None:
    asked = Question("What time is it?", "current_time", r"\d:\d\d")
    guessed = Answered(asked, "It is 9:05.", (), 2.0, good=False)
    looked = Answered(asked, "It is 9:05.", [("current_time", "{}")], 2.0, good=True)
    text = page("a-model", [[guessed, looked], [Answered(asked, "", [], 1.0, good=False)]])
    assert "**Good answers: 1 of 3.**" in text
    assert text.count("(not good, ") == 2
    assert "> (no answer)" in text
