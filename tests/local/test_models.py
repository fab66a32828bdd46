"""S0: one generation as a stream, whatever the provider does."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import GenerateRequest, GenerateResult
from local.models import ProviderModel
from local.provider import complete
from runner.conversation.request import Request
from runner.conversation.units import System, Text, UserTurn
from runner.host.errors import ModelFailed
from runner.models.reply import Reply, ReplyReader

from .scripted import Scripted, streamed, stubborn

HELLO = Request(System((Text("Be kind."),)), (UserTurn((Text("Hello."),)),))


async def told(provider: Scripted) -> tuple[list[str], Reply]:
    reader = ReplyReader(provider.id)
    async with asyncio.timeout(20), aclosing(ProviderModel(complete(provider)).answer(HELLO, reader)) as fragments:
        pieces = [piece async for piece in fragments]
    return [piece for piece in pieces if piece], reader.close()


@given(st.lists(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"]))), st.integers(0, 5))
def test_S0_what_was_streamed_and_what_was_returned_are_one_reply(pieces: list[str], count: int) -> None:
    async def step(request: GenerateRequest) -> str:
        for piece in pieces[:count]:
            request.on_token(piece)
        return "".join(pieces)

    shown, reply = asyncio.run(told(Scripted(step)))
    assert "".join(shown) == reply.text == "".join(pieces)


async def test_S0_a_stop_string_at_the_end_of_the_stream_alone_is_no_fault() -> None:
    async def step(request: GenerateRequest) -> str:
        request.on_token("Hello.")
        request.on_token("<|im_end|>")
        return "Hello."

    assert (await told(Scripted(step)))[0][0] == "Hello."


async def test_S0_a_provider_that_streams_another_text_than_it_returns_failed() -> None:
    async def step(request: GenerateRequest) -> str:
        request.on_token("Hello")
        return "Good bye"

    with pytest.raises(ModelFailed, match="streamed another text"):
        await told(Scripted(step))


async def test_S0_tokens_may_come_from_another_thread() -> None:
    async def step(request: GenerateRequest) -> str:
        def write() -> None:
            for piece in ("a", "b", "c"):
                request.on_token(piece)

        thread = threading.Thread(target=write)
        thread.start()
        await asyncio.to_thread(thread.join)
        return "abc"

    assert await told(Scripted(step)) == (["a", "b", "c"], Reply("abc", (), "scripted"))


async def test_C2_a_reply_that_reached_its_limit_is_known_as_cut() -> None:
    class Cut(Scripted):
        async def generate(self, request: GenerateRequest) -> GenerateResult:
            return GenerateResult("Hel", cut=True)

    assert (await told(Cut()))[1].cut


async def test_S0_closing_sets_the_stop_signal_and_does_not_wait_for_who_ignores_it() -> None:
    provider = Scripted(stubborn)
    fragments = ProviderModel(complete(provider)).answer(HELLO, ReplyReader("scripted"))
    reading = asyncio.ensure_future(anext(fragments))
    await asyncio.sleep(0.01)
    reading.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert provider.requests[0].stop.is_set()


async def test_S0_an_engine_that_cancels_itself_failed_and_does_not_stop_the_run() -> None:
    async def step(request: GenerateRequest) -> str:
        raise asyncio.CancelledError

    with pytest.raises(ModelFailed, match="gave up its own generation"):
        await told(Scripted(step))


async def test_S0_the_prompt_is_system_turns_and_a_stop_signal() -> None:
    provider = Scripted(streamed("Hi."))
    await told(provider)
    asked = provider.requests[0]
    assert (asked.system, [(turn.role, turn.content) for turn in asked.messages]) == ("Be kind.", [("user", "Hello.")])
    assert (asked.schema, asked.temperature) == (None, None)
