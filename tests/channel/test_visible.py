"""C6: one text that only grows; C1: after the first visible character nobody may start over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.channel.visible import LeadIns, Visible
from runner.conversation.readable import is_readable, without_invisible

UNSEEN = {
    "nul": "\x00",
    "control": "\x07\x1b\x85",
    "white space": " \t\n\u00a0\u3000\u2028",
    "lone surrogates": "\udc00\ud83d",
    "zero width": "\u200b\u200c\u200d\u2060",
    "byte order mark": "\ufeff",
    "directions": "\u200e\u200f\u202a\u202e\u2066\u2069\u061c",
    "variation selectors": "\ufe0f\ufe00\U000e0100",
    "hangul fillers": "\u115f\u1160\u3164\uffa0",
    "tags": "\U000e0001\U000e0041\U000e007f",
    "soft hyphen and joiner": "\u00ad\u034f",
    "braille blank": "\u2800",
    "noncharacters": "\uffff\ufdd0",
}
"""Characters of which a person sees nothing."""

SEEN = ["a", "中", "😀", "❤\ufe0f", "👨\u200d👩", "\u200ea", ".", "\ufffd", "\u0301", "\u0600", "ส", "\ue000", "﷽"]

TURNS = st.lists(st.lists(st.text(alphabet=" \nab中", max_size=6), max_size=5), max_size=5)


def after(*turns: list[str]) -> Visible:
    visible = Visible()
    for turn in turns:
        visible.begin_turn()
        for piece in turn:
            visible.add(piece)
    return visible


@given(TURNS)
def test_C6_the_text_only_grows_and_keeps_every_fragment_as_it_came(turns: list[list[str]]) -> None:
    visible, before = Visible(), ""
    for turn in turns:
        visible.begin_turn()
        for piece in turn:
            visible.add(piece)
            assert visible.text.startswith(before) and visible.text.endswith(piece)
            before = visible.text
    glued = "".join("".join(turn) for turn in turns)
    assert "".join(visible.text.split()) == "".join(glued.split())
    assert visible.shown == bool(glued.strip())


@given(TURNS, st.lists(st.sampled_from([" ", "\n", "\t", ""]), max_size=4))
def test_C1_white_space_of_a_model_that_failed_leaves_no_readable_trace(
    turns: list[list[str]], blanks: list[str]
) -> None:
    visible, untouched = after(*turns, blanks), after(*turns)
    visible.drop_turn()
    for each in (visible, untouched):
        each.begin_turn()
        each.add("next")
    assert visible.text == untouched.text


def test_C6_two_turns_are_set_off_by_a_blank_line() -> None:
    assert after(["Looking it up."], ["Found", " it."]).text == "Looking it up.\n\nFound it."


def test_C6_a_gap_that_is_there_already_is_not_doubled() -> None:
    assert after(["a\n\n"], ["b"]).text == "a\n\nb"
    assert after(["a\n"], ["b"]).text == "a\n\nb"
    assert after(["a\n\n\n\n"], ["b"]).text == "a\n\n\n\nb"


def test_C6_leading_white_space_of_a_chunk_is_kept() -> None:
    assert after(["a", " b", "\n  c"]).text == "a b\n  c"


def test_C1_white_space_is_not_visible_content_and_the_first_letter_is() -> None:
    visible = after(["\n "])
    before = (visible.turn_shown, visible.shown)
    visible.add("a")
    assert (before, visible.turn_shown, visible.shown) == ((False, False), True, True)


def test_C1_each_turn_starts_unshown() -> None:
    visible = after(["a"], [])
    assert visible.shown and not visible.turn_shown


def test_C1_what_was_readable_is_never_dropped() -> None:
    visible = after(["a"])
    visible.drop_turn()
    assert visible.text == "a"


def test_C6_a_note_of_the_runner_is_set_off_from_the_models_words() -> None:
    visible = after(["half an ans"])
    visible.note("[stopped]")
    assert visible.text == "half an ans\n\n[stopped]"


def test_C6_a_sentence_that_stands_alone_has_no_white_space_before_it() -> None:
    visible = after(["\n\n"])
    visible.note("Sorry.")
    assert visible.text == "Sorry."


def test_C6_two_notes_stand_apart() -> None:
    visible = Visible()
    visible.note("one")
    visible.note("two")
    assert visible.text == "one\n\ntwo"


@pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN.keys())
def test_I8_what_nobody_can_see_is_nothing_alone_and_kept_beside_words(text: str) -> None:
    assert not is_readable(text)
    visible = after([text])
    assert not visible.shown and not visible.turn_shown and not visible.text.strip()
    assert is_readable(f"{text}a") and is_readable(f"a{text}")
    assert "".join(without_invisible(f"a {text}b").split()) == "ab"


@pytest.mark.parametrize("text", SEEN)
def test_I8_what_is_seen_is_kept_as_it_came(text: str) -> None:
    assert is_readable(text)
    assert after(["\u200b", text, "\ufeff"]).text == f"\u200b{text}\ufeff"


def test_I8_a_turn_of_nothing_leaves_no_trace_between_two_others() -> None:
    visible = after(["Looking."], ["\u200b", " "])
    assert visible.text == "Looking.\n\n" and not visible.turn_shown
    assert after(["Looking."], ["\u200b", " "], ["Done."]).text == "Looking.\n\nDone."
    visible.note("[stopped]")
    assert visible.text == "Looking.\n\n[stopped]"


def test_I8_halves_of_a_character_are_seen_once_they_are_whole() -> None:
    visible = after(["\ud83d"])
    assert not visible.shown
    visible.add("\ude00")
    assert (visible.text, visible.shown) == ("😀", True)


def told(*turns: str, answer: str = "", pieces: int = 3) -> list[str]:
    """What is shown of each lead-in and of the answer behind them, fed in pieces of so many characters."""
    lead_ins, shown = LeadIns(), []
    for turn in (*turns, answer):
        lead_ins.begin()
        parts = [lead_ins.feed(turn[at : at + pieces]) for at in range(0, len(turn), pieces)]
        shown.append("".join((*parts, lead_ins.end(calls=turn is not answer))))
    return shown


LOOK = "I look up the member first."


@given(st.integers(1, 40))
def test_K9_a_lead_in_that_is_said_again_word_for_word_is_shown_once(pieces: int) -> None:
    assert told(LOOK, LOOK, LOOK, answer="Ann.", pieces=pieces) == [LOOK, "", "", "Ann."]
    chinese = "我先查一下成员。"
    assert told(chinese, f"{chinese}再查群。", answer=f"{chinese}好了。", pieces=pieces) == [
        chinese,
        "再查群。",
        "好了。",
    ]


@given(st.integers(1, 40))
def test_K9_what_goes_on_in_another_way_is_shown_whole(pieces: int) -> None:
    turns = ["I look up the member first, then the group.", "I look", "I look up the", f"{LOOK}x"]
    assert told(LOOK, *turns, answer="I", pieces=pieces) == [LOOK, *turns, "I"]


@given(st.integers(1, 40))
def test_K9_behind_a_lead_in_that_is_known_only_what_is_new_is_shown(pieces: int) -> None:
    more = f"{LOOK}\n\nThen I look up the group."
    found = told(LOOK, more, more, f"{LOOK} Then I look up the group.", answer=f"{LOOK} It is Ann.", pieces=pieces)
    assert found == [LOOK, "Then I look up the group.", "", "", "It is Ann."]


def test_K9_the_first_lead_in_waits_for_nothing_and_an_answer_to_new_words_may_say_the_same() -> None:
    lead_ins = LeadIns()
    lead_ins.begin()
    assert lead_ins.feed("I l") == "I l"
    assert lead_ins.end(calls=True) == ""
    lead_ins.forget()
    lead_ins.begin()
    assert lead_ins.feed("I l") == "I l"


def test_K9_lists_and_code_are_left_out_only_as_a_whole() -> None:
    steps = "Steps to take:\n- read it\n```python\nprint(1)\n```"
    assert told(steps, steps, answer="```python\nprint(2)\n```") == [steps, "", "```python\nprint(2)\n```"]


@given(st.lists(st.text(alphabet="ab .\n。", max_size=30), max_size=6), st.integers(1, 9))
def test_K9_what_is_left_out_was_shown_before(turns: list[str], pieces: int) -> None:
    shown = "".join(told(*turns, answer="The end", pieces=pieces))
    assert all("".join(word.split()) in "".join(shown.split()) for turn in turns for word in turn.split("."))
    assert "The end" in shown
