"""B4, D6, K7: units for a model that takes less, and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.reduced import IMAGE_LEFT_OUT, Reduced
from runner.conversation.units import AssistantTurn, Image, Text, ToolCall, ToolResult, Unit, UserTurn

PICTURE = UserTurn((Text("look"), Image(base64="aGk=")))
CALLED = AssistantTurn("Looking.", (ToolCall("c1", "look", "{}"),), (ToolResult("c1", "look", "found"),))
MUTE = AssistantTurn("", (ToolCall("c1", "look", "{}"),), (ToolResult("c1", "look", "found"),))
UNITS = st.lists(
    st.sampled_from([PICTURE, CALLED, MUTE, UserTurn((Text("hi"),)), AssistantTurn("Hello.")]), unique=True
).map(tuple)


def test_B4_a_picture_is_words_and_what_has_none_stays_the_same_object() -> None:
    reduced = Reduced(blind=True, in_words=False)
    (blind, called) = reduced.units((PICTURE, CALLED))
    assert blind == UserTurn((Text("look"), Text(IMAGE_LEFT_OUT)))
    assert called is CALLED


def test_D6_calls_and_results_are_words_of_the_users_side() -> None:
    said, told = Reduced(blind=False, in_words=True).units((CALLED,))
    assert said == AssistantTurn("Looking.")
    assert isinstance(told, UserTurn) and told.text() == "[look was called with {} and returned:]\nfound"
    assert len(Reduced(blind=False, in_words=True).units((MUTE,))) == 1


@given(UNITS, st.booleans(), st.booleans())
def test_K7_what_was_reduced_comes_back_whole_and_stays_the_same_object(
    units: tuple[Unit, ...], blind: bool, in_words: bool
) -> None:
    reduced = Reduced(blind=blind, in_words=in_words)
    sent = reduced.units(units)
    assert all(one is other for one, other in zip(sent, reduced.units(units), strict=True))
    assert all(one is other for one, other in zip(reduced.back(sent), units, strict=True))


@given(UNITS, st.data())
def test_K7_of_a_reply_that_was_cut_in_two_the_whole_comes_back(units: tuple[Unit, ...], data: st.DataObject) -> None:
    reduced = Reduced(blind=True, in_words=True)
    sent = reduced.units(units)
    cut = data.draw(st.integers(0, len(sent)))
    made = UserTurn((Text("[a stub]"),))
    back = reduced.back((made, *sent[cut:]))
    assert back[0] is made
    assert back[1:] == units[len(units) - len(back) + 1 :]
