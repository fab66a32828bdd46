"""Sm: whatever a model writes, and however much of it, other chats of the worker go on meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from callformats import StreamReader
from runner.loop.turn import _AT_ONCE
from tests.host import Model, Reply, Tool

from .scenes import assert_sound, host_with

LENGTH = 60_000
INVOKED = frozenset({"invoke", "count_tokens"})
HOSTILE = {
    "line ends": "\n",
    "openers of tags": "<",
    "back-ticks": "`",
    "braces": "{",
    "brackets": "[",
    "calls that never close": "<tool_call>",
    "quotes": '"',
    "backslashes": "\\",
    "one long word": "a",
    "blanks": " ",
    "combining marks": "\u0301",
    "a chant": "I look it up. ",
    "the tool's name": "look\n",
    "parameters that never close": "<function=look><parameter=a>",
    "thoughts": "<think>a</think>",
    "calls in a row": "[TOOL_CALLS]look[ARGS]{",
    "NUL": "a\0",
}


def host_for(text: str, profile: str, *, streamed: bool) -> Any:
    config = {"model-profile": profile, "tool-call-format": "tags"}
    said = Reply(text, chunks=40) if streamed else text
    replies = [said, "Done."]
    model = Model("m1", replies) if streamed else Model("m1", replies, operations=INVOKED)
    return host_with(models=[model], tools=[Tool("look")], config=config)


@pytest.mark.parametrize("profile", ["standard", "auto", "small"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
async def test_Sm_no_long_text_is_gone_over_in_the_event_loop(
    unit: str, streamed: bool, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 0
    feed = StreamReader.feed

    def watched(self: StreamReader, chunk: str) -> str:
        nonlocal longest
        if threading.current_thread() is threading.main_thread():
            longest = max(longest, self.effort(chunk))
        return feed(self, chunk)

    monkeypatch.setattr(StreamReader, "feed", watched)
    host = host_for((unit * LENGTH)[:LENGTH], profile, streamed=streamed)
    run = await host.say("go")
    assert run.status in ("completed", "failed")
    assert longest <= _AT_ONCE
    await assert_sound(host, run)


async def held_for(text: str, profile: str) -> float:
    """The longest stretch, in seconds of processor time, in which no other task of the loop came to its turn."""
    longest = 0.0

    async def pulse() -> None:
        nonlocal longest
        while True:
            before = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - before)

    host = host_for(text, profile, streamed=False)
    pulsing = asyncio.create_task(pulse())
    await host.say("go")
    pulsing.cancel()
    await host.aclose()
    return longest


MACHINE = 15
"""A busy machine, the garbage collector, and the test host itself, which counts and copies the same text."""


@pytest.mark.parametrize("unit", ["\n", "<tool_call>", "look\n", "```\n", "<think>a</think>"])
@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_Sm_the_loop_is_never_held_for_long(unit: str, profile: str) -> None:
    assert await held_for((unit * LENGTH)[:LENGTH], profile) < 0.02 * MACHINE
