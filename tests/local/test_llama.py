"""S0: llama.cpp in this process as a provider, with a real model of 135 million parameters."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import (
    Available,
    ChatTurn,
    CompactTool,
    Error,
    Finish,
    GenerateRequest,
    LlamaProvider,
    NeedsDownload,
    ToolCall,
    Unavailable,
    run_local_agent,
)
from weights.catalogue import CATALOGUE
from weights.engine import EngineFailed
from weights.errors import Stopped

from .real import SMALLEST, smallest
from .scripted import WEATHER, Called, asking, text_of

HELLO = (ChatTurn("user", "Say hello."),)


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
    request, pieces = asked(*HELLO)
    result = await loaded.generate(request)
    assert result.text.strip()
    assert "".join(pieces) == result.text
    assert len(pieces) > 1


async def test_S0_fits_counts_with_the_models_own_tokens_and_leaves_room_for_the_reply(loaded: LlamaProvider) -> None:
    assert await loaded.fits("You are kind.", HELLO, ())
    assert await loaded.fits("You are kind.", (ChatTurn("user", "word " * 1_800),), ())
    assert not await loaded.fits("You are kind.", (ChatTurn("user", "word " * 2_020),), ())
    tools = [CompactTool("look_up", "Looks things up.", {"type": "object", "properties": {}})]
    assert await loaded.fits("You are kind.", HELLO, tools)


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
    again, _ = asked(*HELLO)
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
    assert await LlamaProvider(tmp_path / "no.gguf").availability() == Unavailable(
        f"there is no file {tmp_path / 'no.gguf'}"
    )
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
    request, _ = asked(*HELLO)
    with pytest.raises(RuntimeError, match="not loaded"):
        await LlamaProvider(tmp_path / "no.gguf").generate(request)


def test_S8_where_tools_stand_in_words_results_do_too_and_roles_alternate() -> None:
    turns = (
        ChatTurn("user", "weather?"),
        ChatTurn("assistant", "{}"),
        ChatTurn("tool", "sunny", "get_weather"),
        ChatTurn("user", "go on"),
    )
    rows = LlamaProvider("135m")._chat("Be kind.", turns)
    assert [row["role"] for row in rows] == ["system", "user", "assistant", "user"]
    assert rows[-1]["content"] == "Result of get_weather:\nsunny\n\ngo on"
    rows = LlamaProvider("135m", call_format="tags")._chat("", turns)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user"]
    assert rows[2] == {"role": "tool", "content": "sunny", "name": "get_weather"}
