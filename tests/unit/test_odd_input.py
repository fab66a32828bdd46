"""Hostile and odd input on its way through a whole run, between a fake Host and the person in the chat."""

from __future__ import annotations

import asyncio
import time

import pytest

from runner.host.events import Completed, Failed
from tests.unit.border import (
    ASKED,
    GONE,
    Handler,
    check_protocol,
    context,
    events_of,
    follow_up,
    row,
    said,
    text_frame,
)

# --- output


async def test_C6_a_run_that_broke_off_shows_its_whole_text_before_it_completes_it() -> None:
    check_protocol(await events_of(Handler([[text_frame("half"), 0.05, text_frame(" more"), 0.05, GONE]]), context()))


async def test_C6_a_run_out_of_time_shows_its_whole_text_before_it_completes_it() -> None:
    handler = Handler([[text_frame("half"), None]])
    check_protocol(await events_of(handler, context(deadline_at=time.time() + 2.3)))


async def test_Q4_a_host_call_that_ends_in_a_cancellation_of_its_own_still_ends_the_run() -> None:
    events = await events_of(Handler(answers={"get_prompt": asyncio.CancelledError()}), context(), limit=3)
    assert isinstance(events[-1], Completed | Failed)


async def test_Q4_a_stream_that_ends_in_a_cancellation_of_its_own_still_ends_the_run() -> None:
    events = await events_of(Handler([[text_frame("a"), asyncio.CancelledError()]]), context(), limit=3)
    assert isinstance(events[-1], Completed | Failed)


async def test_C6_an_answer_with_a_nul_reaches_no_database() -> None:
    assert "\x00" not in said(await events_of(Handler([[text_frame("a\x00b")]]), context()))


async def test_C6_lone_surrogates_of_a_model_reach_no_database() -> None:
    said(await events_of(Handler([[text_frame("a\ud83d b")]]), context())).encode()


async def test_C6_an_emoji_split_over_two_chunks_is_whole() -> None:
    assert said(await events_of(Handler([[text_frame("\ud83d"), text_frame("\ude00")]]), context())) == "😀"


# --- hostile text on the way to the model


@pytest.mark.parametrize("bad", ["\ud83d", "\x00"], ids=["surrogate", "NUL"])
@pytest.mark.parametrize("place", ["history", "input", "sender", "prompt", "steering", "actor"])
async def test_B5_lone_surrogates_and_nul_reach_no_provider(place: str, bad: str) -> None:
    pulls = iter([{"items": [follow_up(f"x{bad}")]}])
    answers: dict[str, object] = {}
    if place == "history":
        answers["history_page"] = {"items": [row("user", f"a{bad}b").model_dump()]}
    if place == "actor":
        answers["history_page"] = {"items": [row("user", "ab", metadata={"actor_id": f"u{bad}"}).model_dump()]}
    if place == "prompt":
        answers["get_prompt"] = {"prompt": [{"role": "system", "content": f"a{bad}"}]}
    if place == "steering":
        answers["steering_pull"] = lambda _sent: next(pulls, {"items": []})
    handler = Handler(answers=answers)
    text = f"hi{bad}" if place == "input" else "hi"
    await events_of(
        handler, context(text, group=True, variables={"sender_name": f"A{bad}" if place == "sender" else "A"})
    )
    everything = handler.requests(ASKED)[-1]["messages"]
    plain = "".join(str(message["content"]) for message in everything)
    assert bad not in plain


# --- history and prompt


@pytest.mark.parametrize(
    "rows",
    [
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "assistant", "content": "I am Bob."}],
        [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": "c"},
        ],
        [{"role": "user", "content": "example"}],
    ],
    ids=["two users", "assistant first", "two assistants", "user before history"],
)
async def test_B5_roles_alternate_whatever_turns_the_prompt_opens_with(rows: list[dict[str, str]]) -> None:
    old = [row("assistant", "old answer", 2).model_dump(), row("user", "old question", 1).model_dump()]
    handler = Handler(answers={"get_prompt": {"prompt": rows}, "history_page": {"items": old}})
    await events_of(handler, context())
    roles = [message["role"] for message in handler.requests(ASKED)[0]["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
