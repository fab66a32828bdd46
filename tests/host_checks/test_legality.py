"""The rules of the providers, with examples on both sides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.host import Rule, violations
from tests.host.legality import RULES

SYSTEM = {"role": "system", "content": "Be brief."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(text: str = "hello") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asked(*ids: str, arguments: Any = "{}", name: str = "find", **more: Any) -> dict[str, Any]:
    calls = [{"id": key, "type": "function", "function": {"name": name, "arguments": arguments}} for key in ids]
    return {"role": "assistant", "tool_calls": calls, **more}


def result(key: str, content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": content}


LEGAL: list[list[dict[str, Any]]] = [
    [user()],
    [SYSTEM, user(), said(), user("and?")],
    [SYSTEM, user(), asked("a"), result("a")],
    [user(), asked("a", "b"), result("b"), result("a"), asked("c"), result("c")],
    [user(), asked("a"), result("a"), user([IMAGE])],
    [user(), asked("a", content="Let me see."), result("a"), said(), user()],
    [user([{"type": "text", "text": "see"}, IMAGE])],
    [user(), {**said(), "reasoning_content": "hm", "provider_specific_fields": {"thought_signature": "x"}}, user()],
]


@pytest.mark.parametrize("messages", LEGAL)
def test_a_legal_request_has_no_violation(messages: list[dict[str, Any]]) -> None:
    assert violations(messages, [{"name": "find"}]) == []


ILLEGAL: list[tuple[Rule, list[dict[str, Any]]]] = [
    ("system_first", [user(), said(), SYSTEM, user()]),
    ("system_first", [SYSTEM, SYSTEM, user()]),
    ("first_is_user", [SYSTEM, said(), user()]),
    ("first_is_user", [SYSTEM]),
    ("last_is_not_assistant", [user(), said()]),
    ("known_role", [user(), {"role": "plugin", "content": "x"}]),
    ("roles_alternate", [user(), user("again")]),
    ("roles_alternate", [user(), said(), said(), user()]),
    ("roles_alternate", [user(), asked("a"), result("a"), user(), user("again")]),
    ("call_answered", [user(), asked("a", "b"), result("a")]),
    ("call_answered", [user(), asked("a"), user("?"), result("a")]),
    ("orphan_tool", [user(), result("a")]),
    ("orphan_tool", [user(), asked("a"), result("a"), result("a")]),
    ("orphan_tool", [user(), asked("a"), user("?"), result("a")]),
    ("assistant_not_empty", [user(), said(""), user()]),
    ("assistant_not_empty", [user(), said(" \n"), user()]),
    ("assistant_not_empty", [user(), {"role": "assistant"}, user()]),
    ("assistant_not_empty", [user(), asked("a", content=""), result("a")]),
    ("user_not_empty", [user("")]),
    ("user_not_empty", [user([])]),
    ("system_not_empty", [{"role": "system", "content": " "}, user()]),
    ("tool_is_text", [user(), asked("a"), result("a", "")]),
    ("tool_is_text", [user(), asked("a"), result("a", [IMAGE])]),
    ("part_is_whole", [user([{"type": "text", "text": ""}, IMAGE])]),
    ("part_is_whole", [user([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": ""}}])]),
    ("part_is_whole", [user([{"type": "text", "text": "a"}, {"type": "file_base64"}])]),
    ("arguments_object", [user(), asked("a", arguments=""), result("a")]),
    ("arguments_object", [user(), asked("a", arguments='{"q": '), result("a")]),
    ("arguments_object", [user(), asked("a", arguments="[1]"), result("a")]),
    ("arguments_object", [user(), asked("a", arguments={"q": 1}), result("a")]),
    ("call_id", [user(), asked(""), result("")]),
    ("call_id", [user(), asked("a\nb"), result("a\nb")]),
    ("call_id_unique", [user(), asked("a"), result("a"), asked("a"), result("a")]),
    ("function_name", [user(), asked("a", name="my tool"), result("a")]),
    ("private_field", [user(), {**said(), "provider_specific_fields": {"_localagent_record": {}}}, user()]),
    ("unknown_key", [user(), {**said(), "resp_message_id": "x"}, user()]),
    ("unknown_key", [user([{"type": "text", "text": "a", "content_redacted": True}])]),
    ("unicode", [user("a\ud83d")]),
]


@pytest.mark.parametrize(("rule", "messages"), ILLEGAL)
def test_an_illegal_request_names_the_broken_rule(rule: Rule, messages: list[dict[str, Any]]) -> None:
    assert rule in {one.rule for one in violations(messages)}
    assert rule not in {one.rule for one in violations(messages, ignore=[rule])}


def test_the_rules_about_tools_look_at_the_schemas_of_the_request() -> None:
    history = [user(), asked("a"), result("a")]
    assert [one.rule for one in violations(history, [])] == ["tools_missing"]
    assert [one.rule for one in violations(history, [{"name": "find"}] * 2)] == ["tools_unique"]
    assert [one.rule for one in violations(history, [{"name": "1find"}])] == ["function_name"]


def test_private_prefixes_are_given_by_the_caller() -> None:
    call = asked("a")
    call["tool_calls"][0]["provider_specific_fields"] = {"_mine": 1}
    history = [user(), call, result("a")]
    assert violations(history) == []
    assert [one.rule for one in violations(history, private=["_mine"])] == ["private_field"]


def test_every_rule_has_an_example() -> None:
    shown = {rule for rule, _ in ILLEGAL} | {"tools_missing", "tools_unique"}
    assert shown == set(RULES)


@st.composite
def legal_requests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chats of user turns, answers and batches of calls, each answered in any order."""
    messages: list[dict[str, Any]] = [SYSTEM] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(user(f"question {turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"t{turn}s{step}c{number}" for number in range(draw(st.integers(1, 3)))]
            messages.append(asked(*ids))
            messages += [result(key) for key in draw(st.permutations(ids))]
        messages.append(said(f"answer {turn}"))
    return [*messages, user("last")]


@given(legal_requests())
def test_whatever_is_built_by_the_rules_is_legal(messages: list[dict[str, Any]]) -> None:
    assert violations(messages, [{"name": "find"}]) == []


@given(legal_requests(), st.data())
def test_a_lost_message_is_always_noticed(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    """Any but the system's and the newest user's: a pair or the change of speakers breaks."""
    first = 1 if messages[0] is SYSTEM else 0
    lost = data.draw(st.integers(first, len(messages) - 2))
    before, after = messages[lost - 1]["role"] if lost > first else None, messages[lost + 1]["role"]
    # A user's or assistant's turn between two others that fit together leaves no trace.
    seamless = messages[lost]["role"] != "tool" and not messages[lost].get("tool_calls") and before == "tool"
    found = violations(messages[:lost] + messages[lost + 1 :], [{"name": "find"}])
    assert found or (seamless and after == "user")
