"""Scenarios: chats as data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.host.scenario import Scenario, play

CHAT: dict[str, Any] = {
    "name": "a tool, then a question about it",
    "tools": [{"name": "weather", "result": {"sky": "clear"}}],
    "replies": [
        {"text": "Looking. ", "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        {"text": "Clear in Oslo."},
    ],
    "turns": [
        {
            "say": "Weather in Oslo?",
            "steer": ["And make it short."],
            "expect": {
                "answer": "Looking. Clear in Oslo.",
                "requests": 2,
                "roles": ["system", "user", "assistant", "tool"],
                "in_last_request": ["clear"],
            },
        },
        {"say": "Thanks", "expect": {"contains": ["Thanks"], "requests": 1}},
    ],
    "history": [
        ["user", "Weather in Oslo?"],
        ["user", "And make it short."],
        ["assistant", "Looking. Clear in Oslo."],
        ["user", "Thanks"],
        ["assistant", "Echo: Thanks"],
    ],
}


async def test_a_scenario_that_comes_out_as_expected_has_no_differences() -> None:
    assert await play(Scenario.of(CHAT)) == []


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("answer", "x", "turn 1: answer 'Looking. Clear in Oslo.'"),
        ("contains", ["x"], "turn 1: 'x' is missing in the answer 'Looking. Clear in Oslo.'"),
        ("requests", 3, "turn 1: 2 requests"),
        ("roles", ["user"], "turn 1: roles ['system', 'user', 'assistant', 'tool']"),
        ("in_last_request", ["x"], "turn 1: 'x' is missing in the last request"),
    ],
)
async def test_each_difference_is_told(key: str, value: Any, found: str) -> None:
    first = {**CHAT["turns"][0], "expect": {key: value}}
    assert await play(Scenario.of({**CHAT, "turns": [first, CHAT["turns"][1]]})) == [found]


async def test_a_different_history_is_told_and_unknown_keys_are_refused() -> None:
    (found,) = await play(Scenario.of({**CHAT, "history": []}))
    assert found.startswith("history: ")
    with pytest.raises(TypeError):
        Scenario.of({**CHAT, "turn": []})
