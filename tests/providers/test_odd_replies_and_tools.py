"""K3, D1, K1: odd replies of providers come out as one answer, odd tools are offered in a way that all take."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import Tool
from tests.providers.catalogue import DRIVEN, Case
from tests.providers.dialect import chunk, fragment
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.gateway import Gateway
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.glm import GLM
from tests.providers.dialects.minimax import MiniMax
from tests.providers.dialects.ollama import Ollama
from tests.providers.dialects.openai import OpenAI
from tests.providers.said import Json, Said, Wire, calls
from tests.providers.situations import finder, scene

# What providers really send now and then: every shape comes out as one answer, and each call is made once.

GATEWAY = Case("new-api-chat-completions", "gpt-4o", Gateway)
WIRES = (
    Case("openai-chat-completions", "gpt-4o", OpenAI),
    Case("anthropic-messages", "claude-sonnet-4-5", Anthropic),
    Case("gemini-chat-completions", "gemini-3-pro-preview", Gemini),
    Case("ollama-chat", "qwen3:8b", Ollama),
)
TEA = '{"q":"tea"}'


def told(*fragments: Json) -> Wire:
    """A stream with these fragments of calls, each an event of its own."""
    return Wire([*(chunk({"tool_calls": [one]}) for one in fragments), chunk({}, "tool_calls")])


TOLD_ODDLY = {
    "again at the next index": [
        fragment(0, "c1", "find", ""),
        fragment(0, arguments=TEA),
        fragment(1, "c1", "find", TEA),
    ],
    "again at its own index": [fragment(0, "c1", "find", TEA), fragment(0, "c1", "find", TEA)],
    "three times": [fragment(at, "c1", "find", TEA) for at in range(3)],
    "its name in every fragment": [fragment(0, "c1", "find", '{"q":'), fragment(0, "c1", "find", '"tea"}')],
    "its id from the second fragment on": [fragment(0, None, "find", ""), fragment(0, "c1", None, TEA)],
    "another id from the second fragment on": [fragment(0, "c1", "find", '{"q"'), fragment(0, "c2", None, ':"tea"}')],
    "an empty object first": [fragment(0, "c1", "find", "{}"), fragment(0, "c1", None, TEA)],
    "growing": [fragment(0, "c1", "find", TEA[:end]) for end in (4, 8, len(TEA))],
    "glued to itself": [fragment(0, "c1", "find", TEA + TEA)],
    "without an id": [fragment(0, None, "find", TEA)],
    "without an index": [fragment(None, "c1", "find", TEA)],
}


@pytest.mark.parametrize("shape", TOLD_ODDLY)
async def test_K4_one_call_told_oddly_by_a_gateway_runs_once(shape: str) -> None:
    tool = finder()
    async with scene(GATEWAY, tools=[tool]) as chat:
        chat.provider.say(told(*TOLD_ODDLY[shape]), Said("On page 7."))
        run = await chat.say("where is tea?")
    assert tool.calls == [{"q": "tea"}]
    assert (run.final_text, chat.refused()) == ("On page 7.", [])


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment(0, "c1", "find", TEA), fragment(1, "c2", "find", '{"q":"rum"}')],
        [fragment(0, "c1", "find", TEA), fragment(0, "c2", "find", '{"q":"rum"}')],
        [fragment(0, "c1", "find", TEA), fragment(1, "c1", "find", '{"q":"rum"}')],
        [fragment(0, "c1", "find", TEA + '{"q":"rum"}')],
    ],
    ids=["as they should be", "one index", "one id", "glued"],
)
async def test_K4_two_calls_that_differ_are_two_however_they_are_told(fragments: list[Json]) -> None:
    tool = finder()
    async with scene(GATEWAY, tools=[tool]) as chat:
        chat.provider.say(told(*fragments), Said("Both."))
        run = await chat.say("where are tea and rum?")
    assert sorted(call["q"] for call in tool.calls) == ["rum", "tea"]
    assert (run.final_text, chat.refused()) == ("Both.", [])


@pytest.mark.parametrize("written", ["null", "", "{}", " ", "None", '{"_call": "look"}'])
async def test_K5_no_arguments_in_any_spelling_call_a_tool_that_takes_none(written: str) -> None:
    clock = Tool("clock", result="12:00", parameters={"type": "object", "properties": {}})
    async with scene(GATEWAY, tools=[clock]) as chat:
        chat.provider.say(told(fragment(0, "c1", "clock", written)), Said("Noon."))
        run = await chat.say("what time is it?")
    assert clock.calls == [{}]
    assert (run.final_text, chat.refused()) == ("Noon.", [])


@pytest.mark.parametrize("case", WIRES, ids=str)
async def test_K5_a_tool_without_arguments_is_called_on_every_wire(case: Case) -> None:
    clock = Tool("clock", result="12:00", parameters=None)
    async with scene(case, tools=[clock]) as chat:
        chat.provider.say(calls("clock"), Said("Noon."), Said("Bye."))
        runs = [await chat.say("what time is it?"), await chat.say("thanks")]
    assert clock.calls == [{}]
    assert ([run.status for run in runs], chat.refused()) == (["completed"] * 2, [])


async def test_K5_a_surrogate_pair_cut_over_two_fragments_is_one_character() -> None:
    tool = finder()
    async with scene(GATEWAY, tools=[tool]) as chat:
        pieces = [fragment(0, "c1", "find", '{"q":"\\ud83c'), fragment(0, arguments='\\udf75"}')]
        chat.provider.say(told(*pieces), Said("On page 7."))
        await chat.say("where is that?")
    assert tool.calls == [{"q": "🍵"}]


FILTERED = (
    Case("openai-chat-completions", "gpt-4o", OpenAI),
    Case("zhipuai-chat-completions", "glm-4.6", GLM),
    Case("gemini-chat-completions", "gemini-3-pro-preview", Gemini),
)
WORDS = {"OpenAI": "content_filter", "GLM": "sensitive", "Gemini": "SAFETY"}
"""What each provider calls the end that its filter makes."""


@pytest.mark.parametrize("case", FILTERED, ids=str)
async def test_K6_a_provider_s_filter_leaves_what_was_shown_and_a_note(case: Case) -> None:
    half = "First, take the"
    async with scene(case) as chat:
        chat.provider.say(Said(half, finish=WORDS[case.provider]))
        run = await chat.say("how?")
    assert run.final_text == f"{half}\n\n{say(Notice.FILTERED_NOTE, Locale.EN_US)}"


async def test_K6_thoughts_that_stand_in_the_text_are_neither_an_answer_nor_sent_back() -> None:
    case = Case("minimax-chat-completions", "MiniMax-M2.5", MiniMax)
    async with scene(case) as chat:
        chat.provider.say(Said("Good day.", thoughts="They greet me."), Said("Bye."))
        run = await chat.say("hello")
        await chat.say("bye")
    assert (run.final_text or "").strip() == "Good day."
    assert "They greet me." not in chat.provider.heard[-1].text


@pytest.mark.parametrize("case", WIRES, ids=str)
async def test_C8_what_a_call_holds_besides_is_no_harm_on_any_wire(case: Case) -> None:
    """Quotes, line ends, other scripts and an empty text in arguments and results come through as they are."""
    odd = {"q": 'say "tea"\n{"a": 1} 茶 🍵', "n": ""}
    both = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "string"}}}
    tool = Tool("find", fn=lambda **given: f"found {given['q']}", parameters=both)
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(calls("find", odd), Said("Found."), Said("Bye."))
        runs = [await chat.say("look"), await chat.say("bye")]
    assert tool.calls == [odd]
    assert chat.provider.heard[-1].calls[0].read == odd
    assert ([run.status for run in runs], chat.refused()) == (["completed"] * 2, [])


async def test_K2_a_model_s_own_ids_come_back_as_they_were_while_they_are_unique() -> None:
    """`call_0` in every round: a gateway counts anew in each reply."""
    tool = finder()
    async with scene(GATEWAY, tools=[tool]) as chat:
        again = [calls("find", {"q": word}, id="call_0") for word in ("tea", "rum")]
        chat.provider.say(*again, Said("Both."))
        await chat.say("where are tea and rum?")
    ids = chat.provider.heard[-1].call_ids
    assert ids[0] == "call_0"
    assert len(set(ids)) == 2
    assert [call["q"] for call in tool.calls] == ["tea", "rum"]
    assert ids[1].isalnum()


# Tools as strangers describe them are offered in a way that every provider takes (K3, D1).

LONG = 60
"""Seconds after which a chat hangs, on any machine."""

ONE_EACH = list({case.provider: case for case in DRIVEN}.values())

SCHEMAS: dict[str, dict[str, Any]] = {
    "a field of anything": {"type": "object", "properties": {"raw": True, "q": {"type": "string"}}},
    "items of anything": {"type": "object", "properties": {"q": {"type": "array", "items": True}}},
    "a list without items": {"type": "object", "properties": {"q": {"type": "array"}}},
    "a tuple": {
        "type": "object",
        "properties": {"q": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    },
    "several types": {"type": "object", "properties": {"q": {"type": ["string", "null"]}}},
    "an object or nothing": {"type": ["object", "null"], "properties": {"q": {"type": "string"}}},
    "no type": {"properties": {"q": {"type": "string"}}},
    "no type of a field": {"type": "object", "properties": {"q": {"description": "what to find"}}},
    "alternatives at the top": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "id": {"type": "integer"}},
        "anyOf": [{"required": ["q"]}, {"required": ["id"]}],
    },
    "type beside alternatives": {
        "type": "object",
        "properties": {"q": {"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 9}]}},
    },
    "numbers to choose from": {"type": "object", "properties": {"q": {"type": "integer", "enum": [1, 2]}}},
    "a constant": {"type": "object", "properties": {"q": {"const": "tea"}}},
    "a reference": {
        "type": "object",
        "properties": {"q": {"$ref": "#/$defs/word"}},
        "$defs": {"word": {"type": "string", "format": "uri", "pattern": "tea"}},
    },
    "names that few take": {
        "type": "object",
        "properties": {"$top": {"type": "integer"}, "要找的": {"type": "string"}},
    },
    "a text of two million letters": {
        "type": "object",
        "properties": {"q": {"type": "string", "maxLength": 2_000_000}},
    },
}

TYPES_WANTED = {"Kimi", "llama.cpp"}
"""Providers that refuse a field which may be anything. No type would be true for it, so they are asked once more with
less (K7), and that is remembered."""


@pytest.mark.parametrize("case", ONE_EACH, ids=str)
async def test_K3_tools_as_strangers_describe_them_are_taken_by_every_provider(case: Case) -> None:
    described = enumerate(SCHEMAS.items())
    tools = [Tool(f"tool {number}", description=what, parameters=schema) for number, (what, schema) in described]
    async with asyncio.timeout(LONG), scene(case, tools=tools) as chat:
        chat.provider.say(Said("Good day."), Said("Good night."))
        runs = [await chat.say("hello"), await chat.say("good night")]
        refused = len(chat.refused())
        heard = chat.provider.heard
    assert [(run.status, run.final_text) for run in runs] == [("completed", "Good day."), ("completed", "Good night.")]
    assert (refused, len(heard)) == ((1, 3) if case.provider in TYPES_WANTED else (0, 2))
    assert len(heard[0].tools) == len(SCHEMAS)
