"""S1, Se, K6: what of a reply the user sees, and which part of it is a thought."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem

from callformats import Fault, Reading, StreamReader, read
from callformats.thoughts import THOUGHTS, Marks
from callformats.without_thoughts import is_thought_alone, without_thoughts
from runner.context.summary import plain
from runner.conversation.history import read_row

from .material import CALL, TOOLS, calls, faults

# S1: what of a reply the user sees, and when; thoughts, made-up results and tokens of the turn are not shown.


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


# Se, K6: one list says what a thought is, for replies, summaries, history and whether there is an answer.


@pytest.mark.parametrize("marks", THOUGHTS, ids=lambda marks: marks.opens)
def test_K6_a_thought_is_no_answer_closed_or_not(marks: Marks) -> None:
    closed = f"{marks.opens}\nI should look.{marks.closes}"
    assert is_thought_alone(closed)
    assert is_thought_alone(f"\n {closed}\n")
    assert is_thought_alone(f"{closed}\n{closed}")
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


ANSWER = "Facts: code 4711."
UNLED = [marks for marks in THOUGHTS if not marks.leads]


def _in_history(text: str) -> str:
    item = TranscriptItem(transcript_id="t", event_id="e", role="assistant", content=text, cursor="1")
    row = read_row(item)
    return row.text if row is not None else ""


@pytest.mark.parametrize("marks", THOUGHTS, ids=lambda marks: marks.opens)
def test_Se_a_thought_is_one_for_replies_summaries_and_history_alike(marks: Marks) -> None:
    text = f"{marks.opens}\nI will say 9999.\n{marks.closes}\n\n{ANSWER}"
    assert read(text, None).text == ANSWER
    assert plain(text) == ANSWER
    assert _in_history(text) == ANSWER
    assert without_thoughts(f"{text}\n{text}", anywhere=not marks.leads).strip().startswith(ANSWER)


@pytest.mark.parametrize("marks", UNLED, ids=lambda marks: marks.opens)
def test_Se_a_thought_that_was_never_closed_is_all_there_is(marks: Marks) -> None:
    text = f"{marks.opens}\nI will say 9999."
    assert read(text, None).text == ""
    assert plain(text) == ""
    assert _in_history(text) == ""
    assert plain(f"{ANSWER}\n{text}") == ANSWER


@pytest.mark.parametrize("marks", [marks for marks in THOUGHTS if marks.leads], ids=lambda marks: marks.opens)
def test_Se_an_answer_may_begin_like_a_thought_that_nothing_closes(marks: Marks) -> None:
    text = f"{marks.opens} first the harbour, then the ship."
    assert _in_history(text) == text
    assert plain(text) == ""


@pytest.mark.parametrize("marks", UNLED, ids=lambda marks: marks.opens)
def test_Se_a_closer_that_is_spoken_of_ends_no_thought(marks: Marks) -> None:
    text = f"{marks.opens}I close with `{marks.closes}` and say 9999.{marks.closes}{ANSWER}"
    assert read(text, None).text == ANSWER
    assert plain(text) == ANSWER
    assert _in_history(text) == ANSWER


@pytest.mark.parametrize("marks", UNLED[1:], ids=lambda marks: marks.opens)
def test_Se_an_answer_may_speak_of_such_tags(marks: Marks) -> None:
    text = f"The markers are {marks.opens} and {marks.closes}, say the documents."
    assert _in_history(text) == text
    quoted = f"`{marks.opens}` opens and `{marks.closes}` closes."
    assert _in_history(quoted) == quoted
    assert plain(quoted) == quoted


def test_Se_a_tag_in_quotes_stays_in_an_answer_whose_thought_went() -> None:
    assert _in_history("<think>hm</think>Write `<think>` first.") == "Write `<think>` first."


def test_Se_a_summary_in_harmonys_channels_is_its_last_channel() -> None:
    text = f"<|channel|>analysis<|message|>9999<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
    assert plain(text) == ANSWER
    assert plain(f"<think>9999</think><answer>{ANSWER}</answer>") == ANSWER


@given(
    st.lists(st.sampled_from([each for m in THOUGHTS for each in (m.opens, m.closes)] + ["a", " ", "`"])).map("".join)
)
def test_Se_what_is_left_of_a_summary_holds_no_thought(text: str) -> None:
    left = without_thoughts(text, anywhere=True)
    openers = [marks.opens for marks in UNLED]
    assert not any(opener in left.replace(f"`{opener}`", "") for opener in openers) or "`" in text


@pytest.mark.parametrize(
    "unit", [each for m in THOUGHTS[:16] for each in (m.opens, m.closes)] + ["`<think>`", "</think> "]
)
def test_Se_taking_thoughts_out_reads_a_text_a_bounded_number_of_times(unit: str) -> None:
    # Quadratic work on a text this long would take minutes.
    text = unit * (200_000 // len(unit))
    without_thoughts(text, anywhere=True)
    without_thoughts(text)
    is_thought_alone(text)


@pytest.mark.parametrize("letters", ["An answer.", "İyi bir cevap İ.", "ẞ ŉ ǰ ﬀ"])
def test_Sm_of_hundreds_of_thoughts_only_what_stands_behind_the_last_is_left(letters: str) -> None:
    # In small letters the Turkish capital is two characters; what stands behind it must be found all the same.
    text = letters + "<think>a</think>" * 300 + letters
    assert without_thoughts(text, anywhere=True) == letters


@pytest.mark.parametrize("letters", ["İ", "İİİİ </think>"])
def test_Se_a_thought_is_found_behind_letters_that_grow_when_made_small(letters: str) -> None:
    assert without_thoughts(f"{letters}a<think>b</think>c", anywhere=True).endswith("ac")


def test_Sm_a_thought_that_speaks_of_its_closer_thousands_of_times_goes_to_the_end() -> None:
    assert without_thoughts("<think>" + '"</think>" ' * 1_000 + "</think>yes") == "yes"
    assert without_thoughts("<think>" + '"</think>" ' * 3_000 + "</think>yes") == ""
