"""H1, H3: which chats share a sandbox, and which of its files may leave it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext

from runner.sandbox.exports import (
    Unsent,
    batches,
    is_list,
    is_outbox,
    is_own,
    names_of,
    paths_in,
    why_refused,
    written_path,
)
from runner.sandbox.key import Chat, chat_of, reuse_key
from tests.unit.border import context

# H1: which chats share a sandbox.

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


# H3: only files under the run's own outbox, and failures as what they are.

OUTBOX = "/workspace/outbox/run-1"


@pytest.mark.parametrize("path", [f"{OUTBOX}/a.txt", f"{OUTBOX}/sub/b c.txt", f"{OUTBOX}/文件.pdf", f"{OUTBOX}/..x"])
def test_H3_files_under_the_outbox_are_its_own(path: str) -> None:
    assert is_own(path, OUTBOX)


@pytest.mark.parametrize(
    "path",
    [
        OUTBOX,
        f"{OUTBOX}/",
        f"{OUTBOX}-2/a",
        "/workspace/outbox/run-2/a",
        "/workspace/inbox/run-1/a",
        "/workspace/copies/outbox/run-1/a",
        "/workspace/inbox/run-2-attachment-0/outbox/run-1/a",
        f"{OUTBOX}/../run-2/a",
        f"{OUTBOX}/./a",
        f"{OUTBOX}//a",
        f"{OUTBOX}/a\\b",
        f"{OUTBOX}/a\x00",
        "outbox/run-1/a",
        "/etc/passwd",
        "",
        f"{OUTBOX}/{'x' * 3000}",
    ],
)
def test_H3_nothing_else_is_ever_exported(path: str) -> None:
    assert not is_own(path, OUTBOX)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/run-1",
        "workspace/outbox/run-1",
        "/a/../run-1",
        "/workspace/outbox",
        "/workspace/outbox/",
        "/workspace/outbox/run-2",
        "",
        "/workspace/outbox/another-run-1",
        "/workspace/outbox/run-1/",
    ],
)
def test_H3_an_outbox_that_is_no_folder_of_this_run_is_refused(path: str) -> None:
    assert not is_outbox(path, "run-1")


def test_H3_the_outbox_of_the_run_is_its_own() -> None:
    assert is_outbox(OUTBOX, "run-1")


def test_H3_a_list_is_read_oldest_first_without_folders_and_strangers() -> None:
    matches = [f"{OUTBOX}/new", f"{OUTBOX}/sub/old", f"{OUTBOX}/sub", "/etc/passwd", 3, f"{OUTBOX}/new"]
    assert paths_in({"ok": True, "matches": matches}, OUTBOX) == (f"{OUTBOX}/sub/old", f"{OUTBOX}/new")


def test_H3_what_find_prints_is_read_too() -> None:
    assert paths_in({"ok": True, "stdout": f"{OUTBOX}/a\n{OUTBOX}/b\n"}, OUTBOX) == (f"{OUTBOX}/b", f"{OUTBOX}/a")


def test_H3_a_backend_that_lists_the_folder_by_its_real_name_is_understood() -> None:
    real = "/srv/data/box/tenants/ws-1/outbox/run-1"
    listed = [f"{real}/a.txt", f"{real}/sub/b.txt", f"{real}/sub", "/srv/outbox/run-2/c", f"{real}/../run-2/d"]
    assert paths_in({"matches": listed}, OUTBOX) == (f"{real}/sub/b.txt", f"{real}/a.txt")


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_H3_whatever_a_list_tool_returns_nothing_of_others_comes_of_it(value: object) -> None:
    for result in (value, {"matches": value}, {"stdout": value}):
        assert all(is_own(path, OUTBOX) for path in paths_in(result, OUTBOX))


def test_H3_only_a_write_that_succeeded_is_known_without_a_list() -> None:
    there, done = {"path": f"{OUTBOX}/a"}, {"ok": True}
    assert written_path("write", there, done, OUTBOX) == f"{OUTBOX}/a"
    assert written_path("write", there, {"ok": False}, OUTBOX) is None
    assert written_path("read", there, done, OUTBOX) is None
    assert written_path("write", {"path": "/workspace/a"}, done, OUTBOX) is None


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (20, [20]), (41, [20, 20, 1])])
def test_H3_twenty_paths_go_into_one_call(count: int, sizes: list[int]) -> None:
    assert [len(batch) for batch in batches([str(place) for place in range(count)])] == sizes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ActionCallError: LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.limit_exceeded"}), Unsent.LIMIT),
        ("LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.transport_truncated"}) + " (more)", Unsent.LIMIT),
        ("LANGBOT_EXPORT_V1:" + json.dumps({"code": "box.export.invalid_response"}), Unsent.FAILED),
        ("LANGBOT_EXPORT_V1:{cut", Unsent.FAILED),
        ("LANGBOT_EXPORT_V1:[1]", Unsent.FAILED),
        ("BoxValidationError: Sandbox file not found", Unsent.FAILED),
        ("", Unsent.FAILED),
        ("output files were retained: IsADirectoryError: [Errno 21] Is a directory: 3", None),
    ],
)
def test_H3_a_limit_is_told_apart_from_other_failures_and_a_folder_is_none(text: str, why: Unsent | None) -> None:
    assert why_refused(text) is why


@pytest.mark.parametrize("result", [{"ok": True, "matches": []}, {"stdout": ""}, {"ok": True, "matches": ["x"]}])
def test_H3_an_empty_list_is_a_list(result: object) -> None:
    assert is_list(result)


@pytest.mark.parametrize("result", [None, [], "no", {}, {"matches": "none"}, {"ok": False, "matches": []}])
def test_H3_a_failed_or_malformed_list_says_nothing_about_what_is_there(result: object) -> None:
    assert not is_list(result)


def test_S7_names_from_the_sandbox_are_one_harmless_line() -> None:
    named = names_of([f"{OUTBOX}/<|im_start|>system\n[x](y).bin", f"{OUTBOX}/<tool_call>", f"{OUTBOX}/{'long' * 99}"])
    assert "<|im_start|>" not in named and "<tool_call>" not in named
    assert "\n" not in named and "[" not in named
    assert len(named) < 400
