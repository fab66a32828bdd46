"""S0: what a provider must have, one generation as a stream, and llama.cpp in this process as a provider."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import (
    Available,
    ChatTurn,
    CompactTool,
    Error,
    Finish,
    GenerateRequest,
    GenerateResult,
    LlamaProvider,
    ModelChoice,
    NeedsDownload,
    ToolCall,
    Unavailable,
    create,
    run_local_agent,
)
from local.models import ProviderModel
from local.provider import OnProgress, complete
from local.turns import chat_rows
from runner.conversation.request import Request
from runner.conversation.units import System, Text, UserTurn
from runner.host.errors import ModelFailed
from runner.models.reply import Reply, ReplyReader
from tests.written import bare
from weights.catalogue import CATALOGUE
from weights.engine import EngineFailed
from weights.errors import Stopped

from .scripted import SMALLEST, WEATHER, Called, Scripted, asking, parts_of, smallest, streamed, stubborn, text_of

# S0: what a provider must have, and what the absence of the rest means.


class Least:
    """Nothing but what an engine must have."""

    id = "least"
    label = "The least"

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []

    async def availability(self) -> Available:
        return Available()

    async def prepare(self, on_progress: OnProgress) -> None:
        on_progress(1.0)

    async def generate(self, request: GenerateRequest) -> GenerateResult:
        self.asked.append(request)
        return GenerateResult(f"You said: {request.messages[-1].content}")


async def test_S0_the_five_required_members_are_enough() -> None:
    provider = Least()
    parts = await parts_of(provider, asking("hello"))
    assert text_of(parts) == "You said: hello"
    assert parts[-1] == Finish("stop")


async def test_S0_what_is_missing_means_tags_tools_by_template_everything_fits_and_no_choice() -> None:
    whole = complete(Least())
    assert (whole.tools_inline, whole.call_format, whole.broken) == (False, "tags", None)
    assert await whole.fits("system", (), ())
    assert list(whole.models()) == []
    with pytest.raises(ValueError, match="has no model 'x'"):
        await whole.select_model("x")
    whole.dispose()


async def test_S0_the_base_class_means_the_same_by_its_defaults() -> None:
    whole = complete(Scripted("Hi."))
    assert (whole.tools_inline, whole.call_format, whole.broken) == (False, "tags", None)
    assert list(whole.models()) == []
    with pytest.raises(ValueError, match="has no model 'x'"):
        await whole.select_model("x")


async def test_S0_optional_members_count_where_they_are_there_even_when_they_come_late() -> None:
    class Full(Least):
        tools_inline = True
        call_format = "guided"
        disposed = False

        async def fits(self, system: object, messages: object, tools: object) -> bool:
            return False

        def models(self) -> list[ModelChoice]:
            return [ModelChoice("a", "A")]

        async def select_model(self, model_id: str) -> None:
            self.label = model_id

        def dispose(self) -> None:
            self.disposed = True

    engine = Full()
    whole = complete(engine)
    assert (whole.tools_inline, whole.call_format, whole.broken) == (True, "guided", None)
    assert not await whole.fits("", (), ())
    assert [choice.id for choice in whole.models()] == ["a"]
    await whole.select_model("a")
    whole.dispose()
    engine.broken = "no memory"  # type: ignore[attr-defined]
    assert (whole.label, engine.disposed, whole.broken) == ("a", True, "no memory")


async def test_S0_any_call_format_that_can_be_written_is_one() -> None:
    provider = Scripted("[TOOL_CALLS][" + bare("get_weather", city="Oslo") + "]", "Sunny.", call_format="mistral")
    await parts_of(provider, asking())
    assert provider.requests[1].messages[1].content.startswith("[TOOL_CALLS]")


@pytest.mark.parametrize("name", ["telepathy", ""])
async def test_S0_a_call_format_that_nobody_knows_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no call format named"):
        await parts_of(Scripted("Hi.", call_format=name), asking())


async def test_S0_a_provider_that_is_not_prepared_is_asked_nothing() -> None:
    from local import NeedsDownload

    provider = Scripted("Hi.")
    provider.state = NeedsDownload(1_000)
    parts = await parts_of(provider, asking())
    assert isinstance(parts[-1], Error)
    assert "is not ready (needs-download)" in parts[-1].text
    assert (provider.prepared, provider.requests) == (0, [])


def test_S0_an_agent_needs_providers_with_ids_of_their_own() -> None:
    for providers in ([], [Scripted("a"), Scripted("b")]):
        with pytest.raises(ValueError, match="ids of their own"):
            create(providers)


# S0: one generation as a stream, whatever the provider does.

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


# S0: llama.cpp in this process as a provider, with a real model of 135 million parameters.

SAY_HELLO = (ChatTurn("user", "Say hello."),)


@pytest.fixture(scope="module")
def file() -> Path:
    return smallest()


@pytest.fixture(scope="module")
def loaded(file: Path) -> Iterator[LlamaProvider]:
    provider, seen = LlamaProvider(file, context_tokens=2048, reply_tokens=40), list[float]()
    assert asyncio.run(provider.availability()) == NeedsDownload(SMALLEST.size, cached=True)
    asyncio.run(provider.prepare(seen.append))
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    yield provider
    provider.dispose()


def asked(*turns: ChatTurn, **more: object) -> tuple[GenerateRequest, list[str]]:
    pieces: list[str] = []
    request = GenerateRequest("You are kind.", turns, (), asyncio.Event(), pieces.append)
    for name, value in more.items():
        object.__setattr__(request, name, value)
    return request, pieces


async def test_S0_a_generation_is_streamed_and_returned_whole(loaded: LlamaProvider) -> None:
    assert await loaded.availability() == Available()
    request, pieces = asked(*SAY_HELLO)
    result = await loaded.generate(request)
    assert result.text.strip()
    assert "".join(pieces) == result.text
    assert len(pieces) > 1


async def test_S0_fits_counts_with_the_models_own_tokens_and_leaves_room_for_the_reply(loaded: LlamaProvider) -> None:
    assert await loaded.fits("You are kind.", SAY_HELLO, ())
    assert await loaded.fits("You are kind.", (ChatTurn("user", "word " * 1_800),), ())
    assert not await loaded.fits("You are kind.", (ChatTurn("user", "word " * 2_020),), ())
    tools = [CompactTool("look_up", "Looks things up.", {"type": "object", "properties": {}})]
    assert await loaded.fits("You are kind.", SAY_HELLO, tools)


async def test_S0_a_cancelled_generation_ends_and_the_model_answers_again(loaded: LlamaProvider) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    request, _ = asked(ChatTurn("user", "Tell a long story."))
    object.__setattr__(request, "on_token", lambda piece: loop.call_soon_threadsafe(begun.set))
    writing = asyncio.create_task(loaded.generate(request))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    again, _ = asked(*SAY_HELLO)
    async with asyncio.timeout(60):
        assert (await loaded.generate(again)).text


async def test_C7_a_prompt_above_the_window_is_refused_in_words_that_are_known_as_overflow(
    loaded: LlamaProvider,
) -> None:
    from runner.context.overflow import is_overflow

    request, _ = asked(ChatTurn("user", "word " * 4_000))
    with pytest.raises(EngineFailed) as raised:
        await loaded.generate(request)
    assert is_overflow(str(raised.value), counted=0, window=1_000_000)


async def test_S8_a_guided_run_holds_every_reply_to_the_schema(loaded: LlamaProvider) -> None:
    raw: list[str] = []

    class Overheard(LlamaProvider):
        def __init__(self) -> None:
            self.__dict__.update(loaded.__dict__)

        async def generate(self, request: GenerateRequest):  # type: ignore[no-untyped-def]
            result = await super().generate(request)
            raw.append(result.text)
            return result

    called = Called(get_weather="It is sunny.")
    request = asking("What is the weather in Oslo?", tools=[WEATHER], call=called)
    parts = [part async for part in run_local_agent(Overheard(), request, max_steps=1, step_timeout=300)]
    assert raw
    assert all(text.lstrip().startswith("{") for text in raw)
    names = {json.loads(text)["name"] for text in raw if text.rstrip().endswith("}")}
    assert names <= {"get_weather", "reply_to_user"}
    assert len(called.calls) == len([part for part in parts if isinstance(part, ToolCall)])
    assert not isinstance(parts[-1], Error)
    assert isinstance(parts[-1], Finish)
    assert '"arguments"' not in text_of(parts)


async def test_S0_choosing_another_model_frees_the_current_one(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    provider = LlamaProvider("135m", folder=file.parent)
    assert await provider.availability() == NeedsDownload(SMALLEST.size, _note("135m"), cached=True)
    provider = LlamaProvider("135m", folder=tmp_path)
    assert await provider.availability() == NeedsDownload(SMALLEST.size, _note("135m"), cached=False)
    assert [choice.id for choice in provider.models()] == [*CATALOGUE, "other.gguf"]
    await provider.select_model("other.gguf")
    assert await provider.availability() == NeedsDownload(4, cached=True)
    for odd in ("7b", "../secret.gguf", "missing.gguf", str(tmp_path / "other.gguf")):
        with pytest.raises(ValueError, match="has no model"):
            await provider.select_model(odd)


def _note(key: str) -> str:
    model = CATALOGUE[key]
    return f"{model.name} from {model.source}; licence: {model.licence}"


async def test_S0_a_file_that_is_no_model_makes_the_provider_broken(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_text("this is no model")
    provider = LlamaProvider(path)
    with pytest.raises(EngineFailed, match=r"text\.gguf cannot be loaded"):
        await provider.prepare(lambda _: None)
    assert provider.broken is not None
    assert isinstance(await provider.availability(), Unavailable)


async def test_S0_a_file_that_is_missing_or_an_engine_that_is_not_installed_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = await LlamaProvider(tmp_path / "no.gguf").availability()
    assert isinstance(missing, Unavailable)
    assert missing.reason.startswith(f"there is no file {tmp_path / 'no.gguf'}: check its path")
    monkeypatch.setattr("weights.engine.is_installed", lambda: False)
    state = await LlamaProvider("135m").availability()
    assert isinstance(state, Unavailable)
    assert "requirements-model.txt" in state.reason


async def test_S0_a_download_is_followed_and_stopped_by_cancelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway, stopped = threading.Event(), threading.Event()

    def fetching(model: object, folder: Path, watcher: object) -> Path:
        watcher.progress(0.5)  # type: ignore[attr-defined]
        halfway.set()
        watcher.stop.wait(20)  # type: ignore[attr-defined]
        stopped.set()
        raise Stopped("stopped")

    monkeypatch.setattr("local.llama.fetch", fetching)
    provider, seen = LlamaProvider("135m", folder=tmp_path), list[float]()
    preparing = asyncio.create_task(provider.prepare(seen.append))
    assert await asyncio.to_thread(halfway.wait, 20)
    await asyncio.sleep(0.01)
    state = await provider.availability()
    assert state.state == "downloading"
    assert seen == [0.0, pytest.approx(0.475)]
    preparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert await asyncio.to_thread(stopped.wait, 20)
    assert isinstance(await provider.availability(), NeedsDownload)


async def test_S0_a_provider_that_is_not_prepared_says_so(tmp_path: Path) -> None:
    request, _ = asked(*SAY_HELLO)
    with pytest.raises(RuntimeError, match="not loaded"):
        await LlamaProvider(tmp_path / "no.gguf").generate(request)


def test_S8_where_tools_stand_in_words_results_do_too_and_roles_alternate() -> None:
    turns = (
        ChatTurn("user", "weather?"),
        ChatTurn("assistant", "{}"),
        ChatTurn("tool", "sunny", "get_weather"),
        ChatTurn("user", "go on"),
    )
    rows = chat_rows("Be kind.", turns, told=True)
    assert [row["role"] for row in rows] == ["system", "user", "assistant", "user"]
    assert rows[-1]["content"] == "Result of get_weather:\nsunny\n\ngo on"
    rows = chat_rows("", turns, told=False)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user"]
    assert rows[2] == {"role": "tool", "content": "sunny", "name": "get_weather"}
