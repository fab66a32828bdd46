"""H1: which chats share a sandbox."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.sandbox.key import Chat, reuse_key

DEFAULT = "{launcher_type}_{launcher_id}"
NAMES = ("launcher_type", "launcher_id", "sender_id", "sender_name", "group_name")


def chat(bot: str | None = "bot-1", own: str = "conversation person_1", **names: str) -> Chat:
    given = {"launcher_type": "person", "launcher_id": "1", "sender_id": "1", "run_id": "r1", **names}
    return Chat({name: value for name, value in given.items() if value}, bot, own)


def test_H1_the_same_chat_comes_back_to_its_sandbox_in_every_run() -> None:
    assert reuse_key(DEFAULT, chat(run_id="r1")) == reuse_key(DEFAULT, chat(run_id="r2"))


def test_H1_two_bots_never_share_a_sandbox_though_their_chats_have_the_same_id() -> None:
    assert reuse_key(DEFAULT, chat("bot-1")) != reuse_key(DEFAULT, chat("bot-2"))


def test_H1_two_groups_and_a_private_chat_of_the_same_id_are_three_sandboxes() -> None:
    chats = [chat(launcher_type="group"), chat(launcher_type="group", launcher_id="2"), chat()]
    assert len({reuse_key(DEFAULT, each) for each in chats}) == 3


def test_H1_global_is_one_sandbox_for_all_bots() -> None:
    assert reuse_key("{global}", chat("bot-1")) == reuse_key("{global}", chat("bot-2", launcher_id="9")) == "global"


def test_H1_global_beside_a_name_shares_over_bots_and_parts_by_the_name() -> None:
    template = "{global}_{sender_id}"
    assert reuse_key(template, chat("bot-1")) == reuse_key(template, chat("bot-2"))
    assert reuse_key(template, chat(sender_id="1")) != reuse_key(template, chat(sender_id="2"))


def test_H1_run_id_gives_every_run_its_own() -> None:
    assert reuse_key("{run_id}", chat(run_id="r1")) != reuse_key("{run_id}", chat(run_id="r2"))


@pytest.mark.parametrize("template", ["{nope}", "{sender_id}", "{launcher_type}_{nope}", "{}", "{0}", "{a.b}", "{a!r}"])
def test_H1_a_missing_or_unknown_name_never_merges_two_chats(template: str) -> None:
    one = chat(own="conversation person_1", sender_id="")
    two = chat(own="conversation person_2", sender_id="")
    assert reuse_key(template, one) != reuse_key(template, two)
    assert reuse_key(template, one) == reuse_key(template, one)


def test_H1_without_a_bot_id_the_conversation_keeps_chats_apart() -> None:
    one, two = chat(None, own="conversation a"), chat(None, own="conversation b")
    assert reuse_key(DEFAULT, one) != reuse_key(DEFAULT, two)


def test_H1_a_name_cannot_imitate_what_stands_in_for_a_missing_one() -> None:
    missing = chat(own="conversation person_1")
    for name in ("conversation person_1", "?conversation person_1", "null", "global"):
        assert reuse_key("{sender_name}", missing) != reuse_key("{sender_name}", chat(own="x", sender_name=name))


def test_H1_a_name_cannot_reach_over_the_separator_into_another_chat() -> None:
    template = "{sender_name}_{launcher_id}"
    assert reuse_key(template, chat(sender_name="a_b", launcher_id="c")) != reuse_key(
        template, chat(sender_name="a", launcher_id="b_c")
    )


@given(
    st.fixed_dictionaries({name: st.text(max_size=8) for name in NAMES}),
    st.fixed_dictionaries({name: st.text(max_size=8) for name in NAMES}),
)
def test_H1_chats_that_differ_in_a_used_name_never_share(one: Mapping[str, str], two: Mapping[str, str]) -> None:
    template = "".join(f"{{{name}}}" for name in NAMES)
    first = Chat({name: value for name, value in one.items() if value}, "b", "conversation 1")
    second = Chat({name: value for name, value in two.items() if value}, "b", "conversation 2")
    same = first.names == second.names and all(one.values())
    assert (reuse_key(template, first) == reuse_key(template, second)) is same


@given(st.text(max_size=3000), st.text(max_size=2000))
def test_H1_whatever_the_template_the_host_can_take_the_key(template: str, name: str) -> None:
    key = reuse_key(template, chat(launcher_id=name))
    assert 1 <= len(key) <= 1024
    key.encode()
