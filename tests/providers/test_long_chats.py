"""K1, L8: rounds of earlier runs behind a provider's newest words, and what its prompt cache can keep of them."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from tests.host import Tool
from tests.providers.catalogue import Case
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.dialects.deepseek import DeepSeekR1
from tests.providers.dialects.gemini import Gemini
from tests.providers.dialects.llama_cpp import LlamaCpp
from tests.providers.dialects.mistral import VLLM
from tests.providers.dialects.qwen import QwenGateway
from tests.providers.said import Called, Fails, Heard, Json, Said, calls
from tests.providers.situations import FIND, KIMI, MISTRAL, OPENAI, finder, scene

# What stands behind a provider's newest words: rounds of earlier runs, follow-ups in mid-run, runs that broke off.

STRICT = (
    MISTRAL,
    Case("openai-chat-completions", "Mistral-Small-3.2-24B", VLLM),
    Case("lmstudio-chat-completions", "qwen2.5-7b-instruct", LlamaCpp),
    Case("anthropic-messages", "claude-sonnet-4-5", Anthropic),
    Case("gemini-chat-completions", "gemini-3-pro-preview", Gemini),
    KIMI,
    OPENAI,
)
strictly = pytest.mark.parametrize("case", STRICT, ids=str)


@strictly
async def test_K2_a_chat_with_many_rounds_goes_on_for_messages(case: Case) -> None:
    tool = finder()
    two = Said("I look.", (Called("find", {"q": "a"}), Called("find", {"q": "b"})))
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(two, FIND, Said("Found."), *[answer for n in range(3) for answer in (FIND, Said(f"{n}"))])
        states = [(await chat.say(text)).status for text in ("one", "two", "three", "four")]
    assert (states, chat.refused()) == (["completed"] * 4, [])
    heard = chat.provider.heard[-1]
    assert [call.read["q"] for call in heard.calls] == ["a", "b", "tea", "tea", "tea", "tea"]


async def test_K2_kimi_reads_its_own_ids_in_the_run_and_its_own_form_in_the_next() -> None:
    async with scene(KIMI, tools=[finder()]) as chat:
        chat.provider.say(FIND, FIND, Said("Found."), Said("Bye."))
        await chat.say("look")
        await chat.say("thanks")
    own = ["functions.find:0", "functions.find:1"]
    in_run, after = chat.provider.heard[-2:]
    assert (in_run.call_ids, in_run.answered_ids) == (own, own)
    assert (after.call_ids, after.answered_ids) == (own, own)


async def test_K2_another_model_reads_ids_of_nine_letters_or_digits() -> None:
    async with scene(KIMI, OPENAI, tools=[finder()]) as chat:
        chat.providers[0].say(FIND)
        chat.providers[0].otherwise = Fails()
        await chat.say("look")
    (id,) = chat.providers[1].heard[-1].call_ids
    assert len(id) == 9
    assert id.isalnum()


@strictly
async def test_G1_a_follow_up_in_mid_run_stands_where_the_provider_takes_it(case: Case) -> None:
    def find(q: str) -> str:
        chat.host.steer("and rum?")
        return f"{q} stands on page 7"

    tool = Tool("find", fn=find, parameters=finder().parameters)
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(FIND, Said("Both on page 7."), Said("Bye."))
        runs = [await chat.say("where is tea?"), await chat.say("thanks")]
    assert [run.status for run in runs] == ["completed"] * 2
    assert "and rum?" in chat.provider.heard[-2].text
    assert chat.refused() == []


@strictly
async def test_B6_after_a_run_that_broke_off_behind_its_tools_the_chat_goes_on(case: Case) -> None:
    async with scene(case, tools=[finder()]) as chat:
        chat.provider.say(FIND)
        chat.provider.otherwise = Fails()
        broken = await chat.say("where is tea?")
        chat.provider.say(Said("On page 7."))
        run = await chat.say("are you there?")
    assert broken.status == "failed"
    assert (run.status, run.final_text, chat.refused()) == ("completed", "On page 7.", [])


@strictly
async def test_B5_several_messages_without_an_answer_are_read_by_every_provider(case: Case) -> None:
    async with scene(case) as chat:
        chat.provider.otherwise = Fails()
        for text in ("one", "two"):
            await chat.say(text)
        chat.provider.say(Said("Here."))
        run = await chat.say("three")
    assert (run.final_text, chat.refused()) == ("Here.", [])
    assert [word in chat.provider.heard[-1].text for word in ("one", "two", "three")] == [True] * 3


async def test_C2_the_first_reasoner_never_reads_its_thoughts() -> None:
    case = Case("deepseek-chat-completions", "deepseek-reasoner", DeepSeekR1)
    async with scene(case) as chat:
        chat.provider.say(Said("Good day.", thoughts="They greet me."), Said("Bye.", thoughts="They go."))
        runs = [await chat.say("hello"), await chat.say("bye")]
    assert ([run.final_text for run in runs], chat.refused()) == (["Good day.", "Bye."], [])


async def test_C6_a_gateway_that_wants_a_text_in_every_message_is_answered_all_the_same() -> None:
    """LangBot leaves the field out where there is no text, so calls alone are refused; words in their place are not."""
    case = Case("bailian-chat-completions", "qwen-plus", QwenGateway)
    tool = finder()
    async with scene(case, tools=[tool]) as chat:
        chat.provider.say(FIND, Said("On page 7."))
        run = await chat.say("where is tea?")
    assert (run.final_text, tool.calls) == ("On page 7.", [{"q": "tea"}])
    assert set(chat.refused()) == {"Qwen behind a gateway: content_is_there"}


async def test_K2_ids_of_a_stranger_are_no_longer_than_openai_takes() -> None:
    strangers = Case("anthropic-messages", "claude-sonnet-4-5", Anthropic)
    async with scene(strangers, OPENAI, tools=[finder()]) as chat:
        chat.providers[0].say(calls("find", {"q": "tea"}, id="toolu_" + "x" * 60))
        chat.providers[0].otherwise = Fails()
        run = await chat.say("look")
    assert (run.status, chat.refused()) == ("completed", [])


# L8: what the documents advise for Claude, through LangBot's own requester: the marked prefix grows, never changes.

CLAUDE = Case("anthropic-messages", "claude-sonnet-4-5", Anthropic)
PAGE = Path(__file__).parents[2] / "docs" / "caching.md"
MOST_MARKS = 4
"""Anthropic refuses a request with more of them."""


def advised() -> Json:
    """The parameters as the page tells owners to write them."""
    (block,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    read: Json = json.loads(block)
    return read


def blocks(heard: Heard) -> list[tuple[str, bool]]:
    """Tools, system and messages in the order in which Anthropic caches them, each with whether it is marked."""
    found: list[tuple[str, bool]] = []
    groups = [("tools", heard.body.get("tools") or []), ("system", heard.body.get("system") or [])]
    groups += [(message["role"], message["content"]) for message in heard.body["messages"]]
    for name, group in groups:
        for block in group if isinstance(group, list) else [{"type": "text", "text": group}]:
            told = {key: value for key, value in block.items() if key != "cache_control"}
            found.append((f"{name} {json.dumps(told, sort_keys=True)}", "cache_control" in block))
    return found


def prefix(heard: Heard) -> list[str]:
    """What is cached of a request: all up to its last mark."""
    told = blocks(heard)
    last = max((at for at, (_, marked) in enumerate(told) if marked), default=-1)
    return [text for text, _ in told[: last + 1]]


@pytest.mark.parametrize("streamed", [True, False])
async def test_L8_over_ten_turns_with_tools_the_marked_prefix_grows_and_never_changes(*, streamed: bool) -> None:
    async with scene(CLAUDE, tools=[finder()], extra_args=advised(), streamed=streamed) as chat:
        for turn in range(10):
            look = Said("I look.", (Called("find", {"q": f"word {turn}"}, f"toolu_{turn:02d}"),))
            chat.provider.say(look, Said(f"It is number {turn}."))
            assert (await chat.say(f"Look number {turn} up.")).status == "completed"
    assert chat.refused() == []
    requests = chat.provider.heard
    assert len(requests) == 20
    assert all(1 <= sum(marked for _, marked in blocks(heard)) <= MOST_MARKS for heard in requests)
    for earlier, later in itertools.pairwise(map(prefix, requests)):
        assert later[: len(earlier)] == earlier
        assert len(later) > len(earlier)
    assert prefix(requests[-1])[-1] == blocks(requests[-1])[-1][0], "the newest message is in the cache as well"


async def test_L8_by_langbots_own_setting_the_system_message_alone_is_marked() -> None:
    async with scene(CLAUDE, tools=[finder()], extra_args={"prompt_caching": {"mode": "anthropic"}}) as chat:
        chat.provider.say(Said("Hello."))
        await chat.say("Hi.")
    (heard,) = chat.provider.heard
    assert [text.split()[0] for text, marked in blocks(heard) if marked] == ["system"]
