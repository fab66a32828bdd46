"""The test host beside the real LangBot, where that is installed: same input, same outcome.

Skipped without the `langbot` package. These look at LangBot's own modules, not at a running one."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk

from runner.sandbox.exports import Unsent, why_refused
from runner.tools.offering import Offer, offered_schema
from tests.host import LANGUAGES, Model, Reason, Reply, ToolCall, model_error
from tests.host.chat import Delivered, coalesce
from tests.host.platform import _EVENT_TOOLS, _PLATFORM_TOOLS
from tests.host.provider import convert, request_of, stream, whole_message
from tests.host.script import Json
from tests.host.transcript import BOT, WORKSPACE, Transcript, hollow
from tests.tools.odd_schemas import MALFORMED_DEEP, WELL_FORMED, faults

# The test host beside the real LangBot, where that is installed: same input, same outcome.
#
# Skipped without the `langbot` package. These look at LangBot's own modules, not at a running one.

pytest.importorskip("langbot")

TEXTS = ["", "Hello", "Hello, world", "world", "Hello ", "漢字", "x"]


async def _each(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def _random_results(seed: int) -> list[Delivered]:
    draw = random.Random(seed)
    made: list[Delivered] = []
    for _ in range(draw.randint(1, 6)):
        text = draw.choice(TEXTS)
        if draw.random() < 0.4:
            made.append(Message(role="assistant", content=text))
            continue
        all_content = draw.choice([None, text, draw.choice(TEXTS)])
        final = draw.random() < 0.5
        made.append(MessageChunk(role="assistant", content=text, all_content=all_content, is_final=final))
    return made


def test_results_are_coalesced_alike() -> None:
    real = pytest.importorskip("langbot.pkg.pipeline.process.stream_results").coalesce_stream_results

    async def both(results: list[Delivered]) -> tuple[list[Any], list[Any]]:
        ours = [one.model_dump() async for one in coalesce(_each(results))]
        return ours, [one.model_dump() async for one in real(_each(results))]

    for seed in range(500):
        ours, theirs = asyncio.run(both(_random_results(seed)))
        assert ours == theirs, f"seed {seed}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_error_texts_are_the_translations(language: Any) -> None:
    i18n = pytest.importorskip("langbot.pkg.i18n")
    catalogue = i18n._catalogs[language]
    words = {
        Reason.CONTEXT_LENGTH: "Context length exceeded",
        Reason.AUTHENTICATION: "Invalid API key",
        Reason.NOT_FOUND: "Invalid model or endpoint",
        Reason.RATE_LIMIT: "Rate limit exceeded or insufficient balance",
        Reason.TIMEOUT: "Request timed out",
        Reason.CONNECTION: "Connection failed",
        Reason.BAD_REQUEST: "Invalid request parameters",
        Reason.API_ERROR: "API error",
        Reason.UNKNOWN: "Unknown error",
    }
    assert set(words) == set(Reason)
    for reason, english in words.items():
        assert model_error(reason, language) == f"{catalogue['Model request failed']}: {catalogue[english]}"


async def _store(transcript: Transcript) -> Any:
    """The real store with the same rows."""
    engine_of = pytest.importorskip("sqlalchemy.ext.asyncio").create_async_engine
    store_of = pytest.importorskip("langbot.pkg.agent.runner.transcript_store").TranscriptStore
    base = pytest.importorskip("langbot.pkg.entity.persistence.base").Base
    pytest.importorskip("langbot.pkg.entity.persistence.runner_state")
    engine = engine_of("sqlite+aiosqlite:///:memory:")
    async with engine.begin() as connection:
        await connection.run_sync(base.metadata.create_all)
    store = store_of(engine)
    for row in transcript.rows:
        await store.append_transcript(
            None,
            row.event_id,
            row.conversation,
            row.role,
            bot_id=BOT,
            workspace_id=WORKSPACE,
            content=row.text,
            content_json=row.content_json,
            metadata=row.metadata,
        )
    return store


def test_history_is_paged_alike() -> None:
    transcript = Transcript()
    for number in range(130):
        text = "long " * 1000 if number == 7 else f"row {number}"
        conversation = "person_2" if number % 9 == 0 else "person_1"
        transcript.add(conversation, "user" if number % 2 else "assistant", text, {"role": "user", "content": text})
    draw = random.Random(7)
    requests: list[Json] = [
        {
            "before_cursor": draw.choice([None, "", "1", "40", "131"]),
            "after_cursor": draw.choice([None, "0", "50", "130"]),
            "limit": draw.choice([1, 3, 50, 100, 101, 500]),
            "direction": draw.choice(["backward", "forward", "sideways"]),
        }
        for _ in range(150)
    ]

    async def theirs() -> list[Json]:
        store = await _store(transcript)
        found = []
        for request in requests:
            before, after = request["before_cursor"], request["after_cursor"]
            items, following, previous, more = await store.page_transcript(
                "person_1",
                before_seq=int(before) if before else None,
                after_seq=int(after) if after else None,
                limit=request["limit"],
                direction=request["direction"],
                bot_id=BOT,
                workspace_id=WORKSPACE,
                strict_thread=True,
            )
            cursors = {"next_cursor": str(following) if following else None}
            cursors["prev_cursor"] = str(previous) if previous else None
            found.append({"items": items, **cursors, "has_more": more})
        return found

    for request, page in zip(requests, asyncio.run(theirs()), strict=True):
        own = transcript.page("person_1", request)
        for items in (page["items"], own["items"]):
            for item in items:
                item.pop("transcript_id")
                item.pop("created_at")
        assert own == page, request


def test_inline_payloads_are_hollowed_alike() -> None:
    journal = pytest.importorskip("langbot.pkg.agent.runner.run_journal").AgentRunJournal
    parts: list[Json] = [
        {"type": "text", "text": "a"},
        {"type": "image_base64", "image_base64": "AA==", "image_url": None},
        {"type": "image_base64", "image_base64": None},
        {"type": "file_base64", "file_base64": "AA==", "file_name": "a"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]
    for part in parts:
        assert hollow(part) == journal._sanitize_content_item(part)


def test_messages_are_converted_alike() -> None:
    requester = pytest.importorskip("langbot.pkg.provider.modelmgr.requesters.litellmchat").LiteLLMRequester
    own = object.__new__(requester)
    messages: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "file_base64", "file_base64": "AA=="}]},
        {"role": "user", "content": [{"type": "image_base64", "image_base64": "data:image/png;base64,AA=="}]},
        {"role": "user", "content": [{"type": "image_base64"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "<think>hm</think>yes", "provider_specific_fields": {"finish_reason": "x"}},
        {
            "role": "assistant",
            "content": "<think>hm</think>yes",
            "provider_specific_fields": {"reasoning_content": "hm", "finish_reason": "stop", "_localagent": 1},
        },
        {"role": "assistant", "content": "yes", "provider_specific_fields": {"thinking_blocks": [{"thinking": "a"}]}},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
    ]
    for family in ("", "anthropic", "deepseek"):
        theirs = own._convert_messages([Message.model_validate(one) for one in messages], family)
        assert convert(messages, family) == theirs


def test_platform_tools_have_the_same_parameters_and_events() -> None:
    real = pytest.importorskip("langbot.pkg.agent.runner.platform_tools").PLATFORM_TOOLS_BY_NAME
    assert set(real) == set(_EVENT_TOOLS) | set(_PLATFORM_TOOLS)
    for name, (properties, required, patterns) in _EVENT_TOOLS.items():
        assert set(real[name].parameters["properties"]) == set(properties), name
        assert real[name].parameters.get("required", []) == required, name
        assert tuple(real[name].event_patterns) == patterns, name
    for name, (properties, required) in _PLATFORM_TOOLS.items():
        assert set(real[name].parameters["properties"]) == set(properties), name
        assert real[name].parameters.get("required", []) == required, name


def _provider_chunk(**delta: Any) -> Any:
    finish = delta.pop("finish_reason", None)
    choice = SimpleNamespace(
        delta=SimpleNamespace(model_dump=lambda: {"role": "assistant", **delta}), finish_reason=finish
    )
    return SimpleNamespace(choices=[choice], usage=None)


@pytest.mark.parametrize("removed", [False, True])
def test_a_stream_has_the_same_chunks(removed: bool) -> None:
    """The requester's own loop over a provider's raw chunks, beside ours over the scripted reply."""
    module = pytest.importorskip("langbot.pkg.provider.modelmgr.requesters.litellmchat")
    raw = [
        _provider_chunk(reasoning_content="hm "),
        _provider_chunk(reasoning_content="hm "),
        _provider_chunk(reasoning_content="hm"),
        _provider_chunk(content="Let me "),
        _provider_chunk(content="see."),
        _provider_chunk(tool_calls=[{"index": 0, "function": {"name": "find", "arguments": '{"q":'}}]),
        _provider_chunk(tool_calls=[{"index": 0, "function": {"name": None, "arguments": ' "x"}'}}]),
        _provider_chunk(finish_reason="tool_calls"),
    ]
    call = ToolCall("find", '{"q": "x"}', pieces=2)
    reply = Reply(chunks=["Let me ", "see."], reasoning="hm hm hm", tool_calls=[call])
    data: Json = {"messages": [{"role": "user", "content": "hi"}]}
    request = request_of(Model("m"), data, stream=True, thinking_removed=removed)

    class Requester(module.LiteLLMRequester):  # type: ignore[misc,name-defined]  # known where LangBot is installed
        def __init__(self) -> None:
            """Without an application: only the loop runs."""

        async def _build_completion_args(self, *_: Any, **__: Any) -> Json:
            return {}

        def _client_args(self, args: Json) -> Any:
            import contextlib

            return contextlib.nullcontext(args)

        async def _completion(self, _args: Json) -> Any:
            return None

        def _raw_chunks(self, _response: Any) -> AsyncIterator[Any]:
            return _each(raw)

    async def both() -> tuple[list[Json], list[Json]]:
        ours = [event["chunk"] async for event in stream(reply, request, "en_US")]
        made = Requester().invoke_llm_stream(None, None, [], remove_think=removed)
        return ours, [chunk.model_dump() async for chunk in cast(AsyncIterator[MessageChunk], made)]

    ours, theirs = asyncio.run(both())
    assert _without_split(ours) == _without_split(theirs)
    message = whole_message(reply, request)
    own = Requester()
    assert message["content"] == own._process_thinking_content("Let me see.", "hm hm hm", removed)


def _without_split(chunks: list[Json]) -> list[Json]:
    """Chunks without where exactly text is cut: joined text, joined thought, all else as it is."""
    text = "".join(chunk["content"] or "" for chunk in chunks)
    thought = "".join((chunk["provider_specific_fields"] or {}).get("reasoning_content", "") for chunk in chunks)
    rest = [chunk for chunk in chunks if chunk["tool_calls"] or chunk["is_final"]]
    return [{"text": text, "thought": thought}, *rest]


# What LangBot's own export script says (langbot/pkg/box/selected_files.py), run on a folder of this machine.
#
# Skipped without the `langbot` package. The script is what the Host runs inside a sandbox.

selected_files = pytest.importorskip("langbot.pkg.box.selected_files")


def refusal(*paths: Path) -> str:
    """What the script complains about."""
    script = selected_files.selected_files_script(
        [str(path) for path in paths], max_file_bytes=1_000, max_total_bytes=5_000
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else done.stderr[-4_000:]


def test_H3_a_folder_is_told_apart_from_a_file_that_cannot_be_taken(tmp_path: Path) -> None:
    folder, file, link = tmp_path / "folder", tmp_path / "file", tmp_path / "link"
    folder.mkdir()
    file.write_bytes(b"x")
    link.symlink_to(file)
    assert refusal(file) == ""
    assert why_refused(refusal(folder)) is None
    assert why_refused(refusal(link)) is Unsent.FAILED
    assert why_refused(refusal(tmp_path / "nothing")) is Unsent.FAILED


# K3: what is offered passes LiteLLM's own conversions for Gemini and Anthropic, as LangBot's requester uses them.

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or importing it asks the network for prices
gemini = pytest.importorskip("litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini")
anthropic = pytest.importorskip("litellm.llms.anthropic.chat.transformation")


def _tool(schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}}


@given(WELL_FORMED | MALFORMED_DEEP)
def test_K3_neither_conversion_raises_and_nothing_of_a_field_is_lost(parameters: dict[str, Any]) -> None:
    offer = offered_schema(parameters)
    if not isinstance(offer, Offer):
        return
    names = list(offer.schema["properties"])  # type: ignore[arg-type]  # an object, as `faults` says
    assert faults(offer.schema) == []
    (made,) = gemini.VertexGeminiConfig()._map_function([_tool(offer.schema)], {})
    (declared,) = made["function_declarations"]
    assert list(declared["parameters"].get("properties", {})) == names
    (mapped, _) = anthropic.AnthropicConfig()._map_tool_helper(_tool(offer.schema))
    assert list(mapped["input_schema"]["properties"]) == names
    Draft202012Validator.check_schema(mapped["input_schema"])
