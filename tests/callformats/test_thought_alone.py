"""K6: a reply of thoughts alone is no answer, in whatever spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.callformats.thought_alone import is_thought_alone
from runner.callformats.thoughts import THOUGHTS, Marks


@pytest.mark.parametrize("marks", THOUGHTS, ids=lambda marks: marks.opens)
def test_K6_a_thought_is_no_answer_closed_or_not(marks: Marks) -> None:
    closed = f"{marks.opens}\nI should look.{marks.closes}"
    assert is_thought_alone(closed)
    assert is_thought_alone(f"\n {closed}\n")
    assert is_thought_alone(f"{closed}\n{marks.opens}Or not.")
    assert is_thought_alone(f"{marks.opens}I should look.")
    assert is_thought_alone(marks.opens)


@pytest.mark.parametrize("marks", THOUGHTS, ids=lambda marks: marks.opens)
def test_K6_words_around_a_thought_are_an_answer(marks: Marks) -> None:
    assert not is_thought_alone(f"{marks.opens}I should look.{marks.closes}It is noon.")
    assert not is_thought_alone(f"It is noon. {marks.opens}I should look.{marks.closes}")


@pytest.mark.parametrize("text", ["I should look.</think>", "I should look.</think>\n<answer></answer>", "</think>"])
def test_K6_a_thought_whose_opener_stood_in_the_prompt_is_one(text: str) -> None:
    assert is_thought_alone(text)
    assert not is_thought_alone(f"{text}It is noon.")


@pytest.mark.parametrize("behind", ["</s>", "<|im_end|>", "<|eot_id|>\n", "<response>\n</response>"])
def test_K6_tokens_of_the_turn_are_no_answer(behind: str) -> None:
    assert is_thought_alone(f"<think>I should look.</think>{behind}")


@pytest.mark.parametrize("text", ["", "  \n", "I cannot help with that.", "</s>", "The tag is `<think>`."])
def test_K6_what_is_no_thought_is_none(text: str) -> None:
    assert not is_thought_alone(text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "</s>"]), max_size=12).map("".join))
def test_K6_a_word_behind_the_last_closer_is_always_an_answer(text: str) -> None:
    assert not is_thought_alone(f"{text}</think></s>word")
