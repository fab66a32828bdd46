"""L8: what the documents advise for Claude, through LangBot's own requester: the marked prefix grows, never changes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from tests.providers.catalogue import Case
from tests.providers.dialects.anthropic import Anthropic
from tests.providers.said import Called, Heard, Json, Said
from tests.providers.scene import finder, scene

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
