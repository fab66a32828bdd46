"""H1: which chats share a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from runner.sandbox.key import Chat, chat_of, reuse_key
from tests.unit.border import context

DEFAULT = "{launcher_type}_{launcher_id}"
NAMES = ("launcher_type", "launcher_id", "sender_id", "sender_name", "group_name")


def chat(bot: str | None = "bot-1", own: str = "conversation person_1", **names: str) -> Chat:
    given = {"launcher_type": "person", "launcher_id": "1", "sender_id": "1", "run_id": "r1", **names}
    return Chat({name: value for name, value in given.items() if value}, bot, own)


def run(variables: Mapping[str, object] | None = None, **parts: object) -> Chat:
    """The chat of a run whose context has these parts, and otherwise names nobody but the sender."""
    fields = {**context().model_dump(), "variables": dict(variables or {}), "subject": None}
    fields["delivery"] = {"surface": "platform", "reply_target": None}
    fields["conversation"] = {"conversation_id": "person_1", "bot_id": "bot-1"}
    return chat_of(RunnerContext.model_validate({**fields, **parts}))


@pytest.mark.parametrize(
    "named",
    [
        {"variables": {"launcher_type": "group", "launcher_id": "g1"}},
        {"variables": {"launcher_type": "group", "launcher_id": ""}, "subject": {"launcher_id": "g1"}},
        {"subject": {"launcher_type": "group", "launcher_id": "g1"}},
        {"delivery": {"target_type": "group", "target_id": "g1"}},
    ],
)
def test_H1_a_chat_is_known_by_variables_or_subject_or_reply_target(named: dict[str, Any]) -> None:
    parts = {}
    if "subject" in named:
        parts["subject"] = {"subject_type": "message", "subject_id": "m1", "data": named["subject"]}
    if "delivery" in named:
        parts["delivery"] = {"surface": "platform", "reply_target": named["delivery"]}
    chat = run(named.get("variables"), **parts)
    assert (chat.names["launcher_id"], chat.names["sender_id"], chat.bot) == ("g1", "u1", "bot-1")


def test_H1_variables_count_more_than_the_subject_and_that_more_than_the_reply_target() -> None:
    subject = {"subject_type": "message", "subject_id": "m1", "data": {"launcher_id": "s", "sender_id": "s"}}
    delivery = {"surface": "platform", "reply_target": {"target_type": "t", "target_id": "t"}}
    names = run({"launcher_id": "v"}, subject=subject, delivery=delivery).names
    assert (names["launcher_id"], names["sender_id"], names["launcher_type"]) == ("v", "s", "t")


def test_H1_no_variable_passes_for_the_bot_or_the_run_and_private_ones_are_no_names() -> None:
    chat = run({"bot_id": "bot-9", "run_id": "run-9", "_secret": "x", "user_name": "Ann", "list": ["x"], "none": None})
    assert (chat.bot, chat.names["bot_id"], chat.names["run_id"]) == ("bot-1", "bot-1", "run-1")
    assert chat.names["user_name"] == "Ann"
    assert not {"_secret", "list", "none"} & chat.names.keys()


def test_H1_where_neither_chat_nor_conversation_is_known_every_run_has_its_own_sandbox() -> None:
    alone = [run(run_id=run_id, conversation={"bot_id": "bot-1"}) for run_id in ("run-1", "run-2")]
    assert reuse_key(DEFAULT, alone[0]) != reuse_key(DEFAULT, alone[1])


def test_H1_the_bot_is_found_where_an_event_names_it() -> None:
    subject = {"subject_type": "group", "subject_id": "g1", "data": {"bot_uuid": "bot-7"}}
    assert run(conversation={"conversation_id": "group_g1"}, subject=subject).bot == "bot-7"
    metadata = run(conversation={"conversation_id": "group_g1"}, runtime={"metadata": {"bot_id": "bot-8"}})
    assert metadata.bot == "bot-8"


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
