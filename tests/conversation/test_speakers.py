"""B4: members of a group are told apart, whatever they call themselves."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.speakers import Speakers

IDS = ["u1", "u7", "ou_84aad35d084aa403a838cf73ee18467", "张", "unknown sender", "Ann", ""]


def _shown(names: dict[str, str]) -> dict[str, str]:
    speakers = Speakers(True, names)
    return {actor: speakers.name_of(actor) for actor in names}


@pytest.mark.parametrize(
    "twin",
    ["Ann", " Ann ", "ann", "\uff21\uff4e\uff4e", "A\u200bnn", "\u0410nn", "Ánn", "Ann\n", "Ann\x00"],
)
def test_B4_two_members_whose_names_look_the_same_are_told_apart_by_their_ids(twin: str) -> None:
    shown = _shown({"u1": "Ann", "u7": twin, "u8": "Bob"})
    assert (shown["u1"], shown["u8"]) == ("Ann (u1)", "Bob")
    assert shown["u7"].endswith(" (u7)")


def test_B4_names_that_differ_by_a_vowel_of_their_script_are_two_names() -> None:
    names = {"u1": "กิม", "u2": "กีม", "u3": "かき", "u4": "がき", "u5": "小明", "u6": "小红"}
    assert _shown(names) == names


def test_B4_names_that_are_cut_to_the_same_beginning_are_told_apart() -> None:
    shown = _shown({"u1": "x" * 70, "u7": "x" * 90})
    assert shown["u1"] != shown["u7"]
    assert max(map(len, shown.values())) <= 60


def test_B4_nobody_poses_as_a_member_who_was_told_apart() -> None:
    shown = _shown({"u1": "Ann", "u7": "Ann", "u9": "Ann (u7)"})
    assert shown == {"u1": "Ann (u1)", "u7": "Ann (u7)", "u9": "Ann (u7) (u9)"}


def test_B4_nobody_poses_as_a_member_who_is_known_by_the_id_alone_or_not_at_all() -> None:
    speakers = Speakers(True, {"u7": "u1", "u8": "Unknown Sender"})
    assert speakers.name_of("u1") == "u1 (u1)"
    assert speakers.name_of("u7") == "u1"
    assert speakers.name_of(None) == "unknown sender"
    assert speakers.name_of("u8") == "Unknown Sender (u8)"


def test_B4_one_name_stays_as_it_is_and_a_private_chat_has_none() -> None:
    assert Speakers(True, {"u1": "Ann", "u7": "Bob"}).says("u1", "hi") == "[Ann] hi"
    assert Speakers(False, {"u1": "Ann", "u7": "Ann"}).says("u1", "hi") == "hi"


@given(
    st.dictionaries(
        st.sampled_from(IDS) | st.text(max_size=40),
        st.sampled_from(["Ann", "ann", "Ann (u7)", "Ann (u7) (Ann)", "unknown sender", "u1", ""])
        | st.text(max_size=80),
        max_size=6,
    )
)
def test_B4_no_two_members_have_one_name_and_every_name_is_one_bounded_line(names: dict[str, str]) -> None:
    shown = _shown(names)
    assert all(one != other for one, other in itertools.combinations(shown.values(), 2))
    for name in shown.values():
        assert name.strip() and len(name) <= 60
        assert not set("[]\n\r") & set(name)
