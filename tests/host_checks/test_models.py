"""Model calls as the plugin sees them, and the rules of the providers with examples on both sides."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.message import ContentElement, Message
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import (
    LANGUAGES,
    Language,
    Model,
    Reason,
    Reply,
    Rule,
    TestHost,
    Tool,
    ToolCall,
    model_error,
    violations,
)
from tests.host.legality import RULES

from .probes import Probe, error_of, user

# Model calls as the plugin sees them.


async def nothing() -> None:
    """The callable an LLMTool wants."""


SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOL = LLMTool(name="find", human_desc="", description="Finds", parameters=SCHEMA, func=nothing)


async def events(model: Model, **call: Any) -> list[Any]:
    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[Any]:
        return [event async for event in api.invoke_llm_stream_events(model.id, [user("hi")], **call)]

    probe = Probe(read)
    await TestHost(probe, models=[model]).say("hi")
    return list(probe.seen[0])


async def test_fragments_repeat_id_and_name_and_usage_comes_last() -> None:
    calls = [ToolCall("find", {"q": "snow"}, pieces=3), ToolCall("find", {"q": "rain"}, pieces=2)]
    seen = await events(Model("m1", [Reply("Well", tool_calls=calls, interleaved=True)]))
    fragments = [call for event in seen if event.chunk for call in event.chunk.tool_calls or ()]
    assert [call.id for call in fragments] == ["call_0", "call_1", "call_0", "call_1", "call_0"]
    assert {call.function.name for call in fragments} == {"find"}
    first = "".join(call.function.arguments for call in fragments if call.id == "call_0")
    assert first == '{"q": "snow"}'
    assert seen[-1].chunk is None
    assert seen[-1].usage.total_tokens == seen[-1].usage.prompt_tokens + seen[-1].usage.completion_tokens
    finals = [event.chunk for event in seen if event.chunk and event.chunk.is_final]
    assert finals[0].provider_specific_fields == {"finish_reason": "tool_calls"}


async def test_text_can_follow_is_final() -> None:
    seen = await events(Model("m1", [Reply("a", late_text="b")]))
    chunks = [event.chunk for event in seen if event.chunk]
    assert [(chunk.content, chunk.is_final) for chunk in chunks] == [("a", False), (None, True), ("b", True)]


@pytest.mark.parametrize("removed", [None, True, False])
async def test_thinking_is_rendered_unless_removed(removed: bool | None) -> None:
    model = Model("m1", [Reply("Yes", reasoning="Let me think")])
    seen = await events(model, remove_think=removed)
    text = "".join(event.chunk.content or "" for event in seen if event.chunk)
    thought = "".join(
        (event.chunk.provider_specific_fields or {}).get("reasoning_content", "") for event in seen if event.chunk
    )
    assert text == ("Yes" if removed else "<think>\nLet me think\n</think>\nYes")
    assert thought == "Let me think"
    assert (model.requests[0].remove_think, model.requests[0].thinking_removed) == (removed, bool(removed))


async def test_think_tags_split_over_chunks_are_removed() -> None:
    model = Model("m1", [Reply(chunks=["a<th", "ink>secret</thi", "nk>b", " c <b>"])])
    seen = await events(model, remove_think=True)
    assert "".join(event.chunk.content or "" for event in seen if event.chunk) == "ab c <b>"


async def test_a_pipeline_that_removes_thinking_is_overridden_by_an_explicit_false() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[str]:
        answers = [await api.invoke_llm("m1", [user("hi")], remove_think=flag) for flag in (None, False)]
        return [str(answer.content) for answer in answers]

    probe = Probe(ask)
    replies = [Reply("Yes", reasoning="Hm")] * 2
    await TestHost(probe, replies=replies, pipeline_remove_think=True).say("hi")
    assert probe.seen[0] == ["Yes", "<think>\nHm\n</think>\nYes"]


async def test_tools_are_left_out_for_a_model_without_func_call_but_counted() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> tuple[int, int]:
        await api.invoke_llm("m1", [user("hi")], [TOOL])
        return await api.count_tokens("m1", [user("hi")], [TOOL]), await api.count_tokens("m1", [user("hi")])

    model = Model("m1", abilities=frozenset())
    probe = Probe(ask)
    await TestHost(probe, models=[model]).say("hi")
    assert (model.requests[0].tool_names, len(model.requests[0].offered)) == ([], 1)
    with_tool, without = probe.seen[0]
    assert with_tool > without


async def test_no_tools_are_granted_when_the_primary_lacks_func_call_and_has_no_fallback() -> None:
    bare = Model("m1", abilities=frozenset())
    alone = await TestHost(models=[bare], tools=[Tool("find")]).say("hi")
    with_fallback = await TestHost(models=[bare, Model("m2")], tools=[Tool("find")]).say("hi")
    assert alone.ctx["resources"]["tools"] == []
    names = [tool["tool_name"] for tool in with_fallback.ctx["resources"]["tools"]]
    assert names == ["activate", "list_skill_resources", "read_skill_resource", "find"]


async def test_a_reasoning_level_asks_for_the_version_once_and_needs_the_ability() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        await api.invoke_llm("m1", [user("hi")], reasoning_level="high")
        await api.count_tokens("m1", [user("hi")], reasoning_level="high")
        return await error_of(api.invoke_llm("m2", [user("hi")], reasoning_level="high"))

    probe = Probe(ask)
    models = [Model("m1"), Model("m2", abilities=frozenset({"func_call"}))]
    run = await TestHost(probe, models=models).say("hi")
    assert run.calls.names == ["get_langbot_version", "invoke_llm", "count_tokens", "invoke_llm"]
    assert models[0].requests[0].level == "high"
    assert probe.seen[0].message == (
        "ActionCallError: ValueError: The reasoning ability must be enabled before selecting a reasoning level"
    )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_model_errors_are_translated_texts_without_a_code(language: Language) -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.invoke_llm("m1", [user("hi " * 100)]))

    probe = Probe(ask)
    await TestHost(probe, models=[Model("m1", window=50)], language=language).say("hi")
    assert probe.seen[0].code == "host.action_error"
    assert not probe.seen[0].retryable
    expected = model_error(Reason.CONTEXT_LENGTH, language)
    assert probe.seen[0].message == f"ActionCallError: RequesterError: {expected}"


async def test_a_stream_can_fail_after_some_pieces() -> None:
    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> tuple[list[str], Any]:
        got: list[str] = []

        async def rest() -> None:
            async for chunk in api.invoke_llm_stream("m1", [user("hi")]):
                got.append(str(chunk.content))

        return got, await error_of(rest())

    probe = Probe(read)
    reply = Reply("abcdef", chunks=6, error=Reason.CONNECTION, error_after=2)
    await TestHost(probe, replies=[reply]).say("hi")
    got, error = probe.seen[0]
    assert got == ["a", "b"]
    assert error.message == "ActionCallError: RequesterError: Model request failed: Connection failed"


async def test_a_closed_stream_stops_the_provider() -> None:
    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        stream = api.invoke_llm_stream("m1", [user("hi")])
        async for _ in stream:
            break
        await stream.aclose()

    model = Model("m1", [Reply("abcdef" * 50, chunks=100, chunk_delay=0.01)])
    host = TestHost(Probe(read), models=[model])
    await host.say("hi")
    await host.aclose()
    assert model.aborted == 1


async def test_messages_are_converted_for_the_provider() -> None:
    parts = [
        ContentElement.from_text("see"),
        ContentElement.from_image_base64("data:image/png;base64,AA=="),
        ContentElement.from_file_base64("UERG", "a.pdf"),
        ContentElement(type="image_base64"),
    ]
    assistant = Message(
        role="assistant", content="ok", provider_specific_fields={"finish_reason": "stop", "_localagent": 1}
    )

    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        await api.invoke_llm("m1", [Message(role="user", content=parts), assistant, user("and?")])

    host = TestHost(Probe(ask))
    run = await host.say("hi")
    first, second, _ = run.requests[0].messages
    assert [part["type"] for part in first["content"]] == ["text", "image_url"]
    assert second["provider_specific_fields"] == {"_localagent": 1}
    assert [one.rule for one in run.requests[0].violations()] == ["private_field"]


async def test_two_streams_at_once_can_lose_usage() -> None:
    import asyncio

    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[Any]:
        async def one() -> Any:
            found = [event.usage async for event in api.invoke_llm_stream_events("m1", [user("hi")])]
            return found[-1]

        return list(await asyncio.gather(one(), one()))

    probe = Probe(read)
    reply = Reply("abc", late_text="later", chunk_delay=0.01)
    await TestHost(probe, replies=[reply, reply]).say("hi")
    assert None in probe.seen[0]


async def test_counting_is_deterministic_and_parts_sum_to_a_little_more_than_the_whole() -> None:
    messages = [user("The quick brown fox 敏捷的棕色狐狸"), Message(role="assistant", content="Yes."), user("Why?")]

    async def count(api: RunnerAPIProxy, _ctx: RunnerContext) -> tuple[int, int]:
        whole = await api.count_tokens("m1", messages)
        return whole, sum([await api.count_tokens("m1", [one]) for one in messages])

    probe = Probe(count)
    await TestHost(probe).say("hi")
    whole, parts = probe.seen[0]
    assert whole < parts <= whole + 3 * len(messages)


async def test_a_requester_that_cannot_count_says_so() -> None:
    async def count(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.count_tokens("m1", [user("hi")]))

    probe = Probe(count)
    await TestHost(probe, models=[Model("m1", counting=False)]).say("hi")
    assert probe.seen[0].message.startswith("ActionCallError: Token counting failed: ")


# The rules of the providers, with examples on both sides.

SYSTEM = {"role": "system", "content": "Be brief."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def wrote(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(text: str = "hello") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asked(*ids: str, arguments: Any = "{}", name: str = "find", **more: Any) -> dict[str, Any]:
    calls = [{"id": key, "type": "function", "function": {"name": name, "arguments": arguments}} for key in ids]
    return {"role": "assistant", "tool_calls": calls, **more}


def result(key: str, content: Any = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": content}


LEGAL: list[list[dict[str, Any]]] = [
    [wrote()],
    [SYSTEM, wrote(), said(), wrote("and?")],
    [SYSTEM, wrote(), asked("a"), result("a")],
    [wrote(), asked("a", "b"), result("b"), result("a"), asked("c"), result("c")],
    [wrote(), asked("a"), result("a"), wrote([IMAGE])],
    [wrote(), asked("a", content="Let me see."), result("a"), said(), wrote()],
    [wrote([{"type": "text", "text": "see"}, IMAGE])],
    [wrote(), {**said(), "reasoning_content": "hm", "provider_specific_fields": {"thought_signature": "x"}}, wrote()],
]


@pytest.mark.parametrize("messages", LEGAL)
def test_a_legal_request_has_no_violation(messages: list[dict[str, Any]]) -> None:
    assert violations(messages, [{"name": "find"}]) == []


ILLEGAL: list[tuple[Rule, list[dict[str, Any]]]] = [
    ("system_first", [wrote(), said(), SYSTEM, wrote()]),
    ("system_first", [SYSTEM, SYSTEM, wrote()]),
    ("first_is_user", [SYSTEM, said(), wrote()]),
    ("first_is_user", [SYSTEM]),
    ("last_is_not_assistant", [wrote(), said()]),
    ("known_role", [wrote(), {"role": "plugin", "content": "x"}]),
    ("roles_alternate", [wrote(), wrote("again")]),
    ("roles_alternate", [wrote(), said(), said(), wrote()]),
    ("roles_alternate", [wrote(), asked("a"), result("a"), wrote(), wrote("again")]),
    ("call_answered", [wrote(), asked("a", "b"), result("a")]),
    ("call_answered", [wrote(), asked("a"), wrote("?"), result("a")]),
    ("orphan_tool", [wrote(), result("a")]),
    ("orphan_tool", [wrote(), asked("a"), result("a"), result("a")]),
    ("orphan_tool", [wrote(), asked("a"), wrote("?"), result("a")]),
    ("assistant_not_empty", [wrote(), said(""), wrote()]),
    ("assistant_not_empty", [wrote(), said(" \n"), wrote()]),
    ("assistant_not_empty", [wrote(), {"role": "assistant"}, wrote()]),
    ("assistant_not_empty", [wrote(), asked("a", content=""), result("a")]),
    ("user_not_empty", [wrote("")]),
    ("user_not_empty", [wrote([])]),
    ("system_not_empty", [{"role": "system", "content": " "}, wrote()]),
    ("tool_is_text", [wrote(), asked("a"), result("a", "")]),
    ("tool_is_text", [wrote(), asked("a"), result("a", [IMAGE])]),
    ("part_is_whole", [wrote([{"type": "text", "text": ""}, IMAGE])]),
    ("part_is_whole", [wrote([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": ""}}])]),
    ("part_is_whole", [wrote([{"type": "text", "text": "a"}, {"type": "file_base64"}])]),
    ("arguments_object", [wrote(), asked("a", arguments=""), result("a")]),
    ("arguments_object", [wrote(), asked("a", arguments='{"q": '), result("a")]),
    ("arguments_object", [wrote(), asked("a", arguments="[1]"), result("a")]),
    ("arguments_object", [wrote(), asked("a", arguments={"q": 1}), result("a")]),
    ("call_id", [wrote(), asked(""), result("")]),
    ("call_id", [wrote(), asked("a\nb"), result("a\nb")]),
    ("call_id_unique", [wrote(), asked("a"), result("a"), asked("a"), result("a")]),
    ("function_name", [wrote(), asked("a", name="my tool"), result("a")]),
    ("private_field", [wrote(), {**said(), "provider_specific_fields": {"_localagent_record": {}}}, wrote()]),
    ("unknown_key", [wrote(), {**said(), "resp_message_id": "x"}, wrote()]),
    ("unknown_key", [wrote([{"type": "text", "text": "a", "content_redacted": True}])]),
    ("unicode", [wrote("a\ud83d")]),
]


@pytest.mark.parametrize(("rule", "messages"), ILLEGAL)
def test_an_illegal_request_names_the_broken_rule(rule: Rule, messages: list[dict[str, Any]]) -> None:
    assert rule in {one.rule for one in violations(messages)}
    assert rule not in {one.rule for one in violations(messages, ignore=[rule])}


def test_the_rules_about_tools_look_at_the_schemas_of_the_request() -> None:
    history = [wrote(), asked("a"), result("a")]
    assert [one.rule for one in violations(history, [])] == ["tools_missing"]
    assert [one.rule for one in violations(history, [{"name": "find"}] * 2)] == ["tools_unique"]
    assert [one.rule for one in violations(history, [{"name": "1find"}])] == ["function_name"]


def test_private_prefixes_are_given_by_the_caller() -> None:
    call = asked("a")
    call["tool_calls"][0]["provider_specific_fields"] = {"_mine": 1}
    history = [wrote(), call, result("a")]
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
        messages.append(wrote(f"question {turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"t{turn}s{step}c{number}" for number in range(draw(st.integers(1, 3)))]
            messages.append(asked(*ids))
            messages += [result(key) for key in draw(st.permutations(ids))]
        messages.append(said(f"answer {turn}"))
    return [*messages, wrote("last")]


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
