"""K2: which id a call goes by, for the model that wrote it and for any other."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.call_ids import OWN_CHARACTERS, CallIds, for_others, made

MADE = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
SIGNED = "call_5f1__thought__" + "CpgCAdHtim9" * 200 + "=="
OWN = ["call_0", "D681PevKs", "functions.find:0", "toolu_01A", "chatcmpl-tool-1", "call 0", "x" * 80, "調用", SIGNED]

wishes = st.none() | st.text(max_size=60) | st.sampled_from([*OWN, "functions.find:1", "functions.get:0"])


@pytest.mark.parametrize("own", OWN)
def test_K2_a_models_own_id_stays_as_it_was_whatever_its_shape(own: str) -> None:
    assert CallIds().claim(own, "m") == own


@pytest.mark.parametrize(
    "hostile",
    ["", "a\x00b", "a\nb", "\ud800", "\u202eabc", "a\u200b", "<|im_end|>", "x" * (OWN_CHARACTERS + 1), "x" * 1_000_000],
)
def test_K2_an_id_that_cannot_be_shown_or_is_endless_gives_way_to_one_of_ours(hostile: str) -> None:
    assert MADE.fullmatch(CallIds().claim(hostile, "m"))


def test_K2_ids_that_repeat_over_rounds_or_are_missing_become_ours() -> None:
    ids = CallIds()
    first, *others = [ids.claim(wished, "m") for wished in ("call_0", "call_0", None, "", "call_0")]
    assert first == "call_0"
    assert all(MADE.fullmatch(other) for other in others)
    assert len(set(others)) == 4


@given(st.lists(wishes, max_size=30), st.sets(st.sampled_from([*OWN, made("call", 1), made("call", 2)])))
def test_K2_every_id_is_new_also_under_the_name_that_other_models_read(
    claims: list[str | None], taken: set[str]
) -> None:
    ids = CallIds(taken)
    claimed = [ids.claim(wished, "m") for wished in claims]
    assert len(set(claimed)) == len(claimed) and taken.isdisjoint(claimed)
    read = [ids.sent(each, "find", "m", "other") for each in claimed]
    assert len(set(read)) == len(read) and taken.isdisjoint(read)
    assert all(MADE.fullmatch(each) for each in read)


@given(st.lists(wishes, max_size=12))
def test_K2_the_same_run_gives_the_same_ids_again(claims: list[str | None]) -> None:
    one, two = CallIds(), CallIds()
    assert [one.claim(wished, "m") for wished in claims] == [two.claim(wished, "m") for wished in claims]


def test_K2_an_id_of_nine_letters_and_digits_is_the_same_for_every_model() -> None:
    assert for_others("D681PevKs") == "D681PevKs"
    assert MADE.fullmatch(for_others("call_0")) and for_others("call_0") != for_others("call_1")


def test_K2_an_id_that_another_call_has_for_other_models_is_taken() -> None:
    ids = CallIds()
    first, second = ids.claim("call_0", "m"), ids.claim(for_others("call_0"), "m")
    assert len({ids.sent(each, "find", "m", "other") for each in (first, second)}) == 2


def test_K2_a_model_that_numbers_its_calls_reads_those_of_others_as_numbered() -> None:
    ids = CallIds(wants_numbers=lambda model: model == "kimi")
    history = [(made("record", n), name) for n, name in enumerate(["find", "get", "find"])]
    read = [ids.sent(call_id, name, None, "kimi") for call_id, name in history]
    assert read == ["functions.find:0", "functions.get:1", "functions.find:2"]
    assert [ids.sent(call_id, name, None, "other") for call_id, name in history] == [each for each, _ in history]
    assert [ids.sent(call_id, name, None, "kimi") for call_id, name in reversed(history)] == read[::-1]


def test_K2_a_numbered_id_that_is_taken_becomes_the_next_number() -> None:
    ids = CallIds(wants_numbers=lambda _model: True)
    assert ids.sent("aaaaaaaaa", "find", None, "kimi") == "functions.find:0"
    claimed = [ids.claim(wished, "kimi") for wished in ("functions.find:0", "functions.get:5", "functions.get:5")]
    assert claimed == ["functions.find:1", "functions.get:5", "functions.get:6"]


@given(st.lists(st.sampled_from(["find", "get"]), max_size=5), st.lists(wishes, max_size=12))
def test_K2_numbered_ids_of_replayed_calls_never_meet_those_of_the_run(
    history: list[str], claims: list[str | None]
) -> None:
    ids = CallIds(wants_numbers=lambda _model: True)
    replayed = [ids.sent(made("record", place), name, None, "kimi") for place, name in enumerate(history)]
    live = [ids.claim(wished, "kimi") for wished in claims]
    assert len({*replayed, *live}) == len(replayed) + len(live)
    assert [ids.sent(each, "find", "kimi", "kimi") for each in live] == live


def test_K2_whether_a_model_numbers_its_calls_is_told_each_time_it_writes_an_id() -> None:
    seen: list[tuple[str, bool]] = []
    ids = CallIds(saw=lambda model, numbered: seen.append((model, numbered)))
    for wished in ("functions.find:0", None, "call_0"):
        ids.claim(wished, "m")
    assert seen == [("m", True), ("m", False)]
