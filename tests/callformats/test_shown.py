"""S1: what of a reply the user sees, and when; thoughts, made-up results and tokens of the turn are not shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callformats import Fault, Reading, StreamReader, read

from .offer import CALL, TOOLS, calls, faults


def test_S1_a_call_inside_a_thought_runs_only_when_the_thought_stopped_there_and_it_validates() -> None:
    assert calls(f"<think>I should look.\n{CALL}") == [("search", {"query": "x"})]
    assert read(f"<think>I should look.\n{CALL}", TOOLS).thought == "I should look."
    for text in (
        f"<think>I could {CALL}</think>Done.",
        f"<think>I could {CALL} or not",
        '<think>Hm <tool_call>{"name": "search", "arguments": {"limit": 1}}</tool_call>',
        '<think>Hm <tool_call>{"name": "search", "arguments": {"query": "x',
        '<think>Hm\n{"name": "search", "arguments": {"query": "x"}}',
    ):
        reading = read(text, TOOLS)
        assert reading.calls == ()
        assert "tool_call" not in reading.text
    assert calls(f"I should look.\n{CALL}", thinking=True) == [("search", {"query": "x"})]


def test_S1_a_thought_does_not_end_at_a_closer_that_is_spoken_of() -> None:
    reading = read("<think>The tag `</think>` ends it, and '</think>' too.</think>Yes.", TOOLS)
    assert reading.text == "Yes."
    assert reading.thought == "The tag `</think>` ends it, and '</think>' too."


def test_S1_a_thought_whose_opener_stood_in_the_prompt_is_taken_back() -> None:
    reader = StreamReader(TOOLS)
    assert reader.feed("I wonder. ") == "I wonder."
    assert reader.retracted is False
    reader.feed("</think>Yes")
    assert bool(reader.retracted)
    assert reader.text == "Yes"
    assert reader.close() == Reading("Yes", "I wonder.")


def test_S1_a_made_up_result_is_a_fault_and_nothing_behind_it_counts() -> None:
    text = f"{CALL}\n<tool_response>\nIt rains.\n</tool_response>\nIt rains in Oslo. {CALL}"
    reading = read(text, TOOLS)
    assert [call.name for call in reading.calls] == ["search"]
    assert faults(reading) == [Fault.MADE_UP_RESULT]
    assert reading.text == ""
    alone = read('<tool_response>{"temperature": 3}</tool_response>', TOOLS)
    assert alone.problem == "the reply makes up the result of a tool"
    react = read('Action: search\nAction Input: {"query": "x"}\nObservation: it rains\nFinal Answer: rain', TOOLS)
    assert [call.name for call in react.calls] == ["search"]
    assert faults(react) == [Fault.MADE_UP_RESULT]
    assert react.text == ""


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "</s>", "</tool_call>"]
)
def test_S1_tokens_of_the_turn_never_reach_the_user(token: str) -> None:
    assert read(f"Hello.{token}", TOOLS).text == "Hello."
    assert calls(f'{{"name": "ping", "arguments": {{}}}}{token}') == [("ping", {})]


def test_S1_texts_around_a_call_do_not_run_together() -> None:
    assert read(f"Let me look.{CALL}Just a moment.", TOOLS).text == "Let me look.\n\nJust a moment."
    assert read(f"Let me look. {CALL} Just a moment.", TOOLS).text == "Let me look.  Just a moment."


def test_S1_a_fence_that_holds_only_a_call_goes_with_it() -> None:
    text = f"Here is how:\n\n```python\n{CALL}\n```\n"
    reading = read(text, TOOLS)
    assert [call.name for call in reading.calls] == ["search"]
    assert reading.text == "Here is how:"


def test_S1_a_fenced_example_of_foreign_markup_can_be_read() -> None:
    text = 'Hermes writes:\n\n```\n<tool_call>{"name": "their_tool", "arguments": {}}</tool_call>\n```\n\nThat is all.'
    reading = read(text, TOOLS)
    assert reading.text == text
    assert reading.problem is None


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        (["Hel", "lo, ", "wor"], ["Hel", "lo,", " wor"]),
        (["a <", "b"], ["a", " <b"]),
        (["a <tool", "box>"], ["a", " <toolbox>"]),
        (["x\nsea", "side"], ["x", "\nseaside"]),
        (["x\nsearch", "ing"], ["x", "\nsearching"]),
        (["{", '"temperature": 3', "}"], ["", '{"temperature": 3', "}"]),
        (["```py", "thon\n", "import os\n"], ["", "", "```python\nimport os"]),
        ([CALL, " After", " all"], ["", "After", " all"]),
        (["See </thi", "s"], ["See", " </this"]),
        (["[", "link](u)"], ["", "[link](u)"]),
    ],
)
def test_S1_visible_text_is_not_held_back_longer_than_needed(chunks: list[str], shown: list[str]) -> None:
    reader = StreamReader(TOOLS)
    assert [reader.feed(chunk) for chunk in chunks] == shown


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<[{`>|"), max_size=60))
def test_S1_text_without_any_marker_is_shown_character_by_character(text: str) -> None:
    reader = StreamReader([])
    shown = ""
    for end, char in enumerate(text, 1):
        shown += reader.feed(char)
        assert text[:end].startswith(shown)
        # Only white space, and words that begin "to=", "function", "Action:" or a thought's opening sentence, wait.
        assert len(text[:end].rstrip()) - len(shown) <= 40
    assert reader.close().text == text
