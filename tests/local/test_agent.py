"""S0: several providers as one agent, and the chat in the terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local import (
    Available,
    Error,
    Finish,
    GenerateRequest,
    LocalAgent,
    MessageStart,
    ModelChoice,
    NeedsDownload,
    Part,
    Request,
    Text,
    ToolCall,
    ToolError,
    ToolResult,
    Unavailable,
    create,
)
from local.__main__ import main
from local.chat import Chat, plain, shown
from local.provider import OnProgress
from tests.written import bare, tags

from .scripted import Called, Scripted, asking, forever, smallest, text_of, types_of

# S0: several providers as one agent.


async def run(agent: LocalAgent, request: Request) -> list[Part]:
    async with asyncio.timeout(20):
        return [part async for part in agent.run(request)]


def breaking(name: str = "first") -> Scripted:
    """A provider that finds out in the middle of a generation that it cannot run here."""

    async def step(request: GenerateRequest) -> str:
        provider.broken = "the graphics card is gone"
        raise RuntimeError("a long trace")

    provider = Scripted(step, name=name)
    return provider


async def test_S0_a_provider_that_sets_broken_and_raises_makes_the_loop_go_on_with_the_next() -> None:
    first, second = breaking(), Scripted("I am the second.", name="second")
    parts = await run(create([first, second]), asking())
    assert types_of(parts) == ["message-start", "text", "finish"]
    assert text_of(parts) == "I am the second."


async def test_S0_the_next_provider_goes_on_where_the_first_one_broke_in_its_own_format() -> None:
    first, called = Scripted(tags("get_weather", city="Oslo"), name="first"), Called(get_weather="sunny")

    async def breaks(request: GenerateRequest) -> str:
        first.broken = "gone"
        raise RuntimeError("gone")

    first.steps.append(breaks)
    second = Scripted("It is sunny.", name="second", tools_inline=True)
    parts = await run(create([first, second]), asking(call=called))
    assert len(called.calls) == 1
    assert second.requests[0].messages[1].content == bare("get_weather", city="Oslo")
    assert text_of(parts) == "It is sunny."


async def test_S0_an_error_alone_is_shown_and_no_reason_to_load_another_model() -> None:
    first, second = Scripted(RuntimeError("out of paper"), name="first"), Scripted("Hi.", name="second")
    parts = await run(create([first, second]), asking())
    assert isinstance(parts[-1], Error)
    assert "out of paper" in parts[-1].text
    assert second.requests == []


async def test_S3_a_step_that_takes_too_long_ends_the_run_and_loads_no_other_model() -> None:
    first, second = Scripted(forever, name="first"), Scripted("Hi.", name="second")
    parts = await run(create([first, second], step_timeout=0.05), asking())
    assert isinstance(parts[-1], Error)
    assert "took too long" in parts[-1].text
    assert second.requests == []


async def test_S0_when_all_are_broken_the_reason_of_the_last_is_told() -> None:
    parts = await run(create([breaking("first"), breaking("second")]), asking())
    assert isinstance(parts[-1], Error)
    assert "the graphics card is gone" in parts[-1].text


async def test_S0_a_next_provider_that_was_downloaded_before_is_loaded_on_the_way() -> None:
    second = Scripted("Hi.", name="second")
    second.state = NeedsDownload(cached=True)
    parts = await run(create([breaking(), second]), asking())
    assert (second.prepared, text_of(parts)) == (1, "Hi.")


async def test_S0_a_next_provider_that_would_have_to_be_downloaded_is_not() -> None:
    second, third = Scripted("Hi.", name="second"), Scripted("I am the third.", name="third")
    second.state = NeedsDownload(10)
    parts = await run(create([breaking(), second, third]), asking())
    assert (second.prepared, text_of(parts)) == (0, "I am the third.")


async def test_S0_an_unavailable_provider_is_passed_over() -> None:
    first, second = Scripted("Hi.", name="first"), Scripted("I am the second.", name="second")
    first.state = Unavailable("no graphics card")
    agent = create([first, second])
    assert await agent.availability() == Available()
    assert text_of(await run(agent, asking())) == "I am the second."


async def test_S0_availability_downloads_nothing_and_says_why_nothing_runs() -> None:
    provider = Scripted("Hi.")
    provider.state = NeedsDownload(98_000_000, "from PyPI")
    agent = create([provider])
    assert await agent.availability() == NeedsDownload(98_000_000, "from PyPI")
    provider.state = Unavailable("no space")
    assert await agent.availability() == Unavailable("no space")
    assert provider.prepared == 0


async def test_S0_prepare_goes_on_to_the_next_provider_when_one_is_broken() -> None:
    first, second = Scripted("Hi.", name="first"), Scripted("I am the second.", name="second")
    first.breaks = "no graphics card"
    seen: list[float] = []
    agent = create([first, second])
    await agent.prepare(seen.append)
    assert (first.prepared, second.prepared, seen) == (1, 1, [1.0])
    assert text_of(await run(agent, asking())) == "I am the second."


async def test_S0_prepare_says_when_nothing_can_run_here() -> None:
    first = Scripted("Hi.")
    first.breaks = "no graphics card"
    with pytest.raises(RuntimeError, match="no model can run here: no graphics card"):
        await create([first]).prepare(lambda _: None)


async def test_S0_prepare_can_be_cancelled() -> None:
    class Slow(Scripted):
        ended = False

        async def prepare(self, on_progress: OnProgress) -> None:
            on_progress(0.5)
            try:
                await asyncio.Event().wait()
            finally:
                self.ended = True

    provider, seen = Slow("Hi."), list[float]()
    preparing = asyncio.create_task(create([provider]).prepare(seen.append))
    await asyncio.sleep(0.01)
    preparing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preparing
    assert (seen, provider.ended) == ([0.5], True)


async def test_S0_the_chosen_model_decides_which_provider_comes_first() -> None:
    class Choosing(Scripted):
        chosen = ""

        def models(self) -> list[ModelChoice]:
            return [ModelChoice(f"{self.id}-{size}", size) for size in ("small", "large")]

        async def select_model(self, model_id: str) -> None:
            self.chosen = model_id

    first, second = Choosing("I am the first.", name="first"), Choosing("I am the second.", name="second")
    agent = create([first, second])
    assert [choice.id for choice in agent.models()] == ["first-small", "first-large", "second-small", "second-large"]
    await agent.select_model("second-large")
    assert (first.chosen, second.chosen) == ("", "second-large")
    assert text_of(await run(agent, asking())) == "I am the second."
    with pytest.raises(ValueError, match="no provider has a model 'x'"):
        await agent.select_model("x")


async def test_S0_disposing_frees_every_model() -> None:
    providers = [Scripted("a", name="a"), Scripted("b", name="b")]
    create(providers).dispose()
    assert [provider.disposed for provider in providers] == [1, 1]


async def test_S0_what_a_provider_raises_while_it_looks_whether_a_prompt_fits_is_its_failure() -> None:
    class Odd(Scripted):
        async def fits(self, system: object, messages: object, tools: object) -> bool:
            self.broken = "the tokenizer is missing"
            raise KeyError("tokens")

    parts = await run(create([Odd("Hi.", name="odd"), Scripted("I am the second.", name="second")]), asking())
    assert text_of(parts) == "I am the second."
    assert parts[-1] == Finish("stop")


# The chat in the terminal: `python -m local MODEL.gguf`.

ROOT = Path(__file__).resolve().parent.parent.parent


def chat(*replies: str) -> tuple[Chat, Scripted, list[str]]:
    provider, written = Scripted(*replies), list[str]()
    return Chat(create([provider]), written.append, lambda: datetime(2026, 3, 1, 12, 30, tzinfo=UTC)), provider, written


async def test_the_tools_of_the_demo_work_and_the_conversation_goes_on() -> None:
    talk, provider, written = chat(
        tags("current_time"),
        "It is half past twelve.",
        tags("add_note", text="buy milk"),
        "I added it.",
        "You are welcome.",
    )
    await talk.say("What time is it?")
    await talk.say("Add a note: buy milk")
    await talk.say("Thanks!")
    assert "".join(written) == (
        "[current_time {}]\nIt is half past twelve.\n[add_note {'text': 'buy milk'}]\nI added it.\nYou are welcome.\n"
    )
    told = [turn.content for turn in provider.requests[1].messages if turn.role == "tool"]
    assert "It is 12:30, Sunday 星期日, 2026-03-01 (UTC+0000)." in told[0]
    (noted,) = [turn.content for turn in provider.requests[3].messages[-2:] if turn.role == "tool"]
    assert "Noted: buy milk" in noted
    turns = provider.requests[-1].messages
    assert [turn.role for turn in turns] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant"),
        "user",
    ]


async def test_what_a_tool_of_the_demo_refuses_is_a_failed_call() -> None:
    talk, _, written = chat(tags("calculate", expression="1 / 0"), "That cannot be done.")
    await talk.say("What is 1 / 0?")
    assert "[calculate failed: failed: a division by zero has no result]" in "".join(written)


async def test_an_answer_that_is_stopped_says_that_it_takes_some_seconds_before_it_ends() -> None:
    talk, provider, written = chat("Hello.")
    began = asyncio.Event()

    async def begins(request: GenerateRequest) -> str:
        began.set()
        return await forever(request)

    provider.steps.insert(0, begins)
    answering = asyncio.ensure_future(talk.say("Hi"))
    await began.wait()
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert "".join(written) == "\n[stopping; this takes some seconds]\n"
    assert talk.messages == []


async def test_a_run_that_failed_is_said_and_the_chat_goes_on() -> None:
    talk, provider, written = chat("Hello.")
    provider.steps.insert(0, RuntimeError("out of paper"))
    await talk.say("Hi")
    await talk.say("Hi again")
    assert "out of paper" in "".join(written)
    assert "".join(written).endswith("Hello.\n")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (MessageStart(), ""),
        (Text("a\x1b[2Jb\r\n\tc\u202e"), "a[2Jb\n\tc"),
        (ToolCall("1", "x", {"a": "\x07"}), "[x {'a': '\\x07'}]\n"),
        (ToolResult("1", "x", "y"), ""),
        (ToolError("1", "x", "failed: \x1b[31mred"), "[x failed: failed: [31mred]\n"),
        (Finish("stop"), "\n"),
        (Finish("max-steps"), "\n[max-steps]\n"),
        (Error("No."), "No.\n"),
    ],
)
def test_S7_nothing_that_a_model_or_a_tool_says_drives_the_terminal(part: object, text: str) -> None:
    assert shown(part) == text  # type: ignore[arg-type]
    assert plain("日本語 ไทย é") == "日本語 ไทย é"


def test_python_m_local_chats_in_a_terminal_with_a_real_model() -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "local", str(smallest()), "--calls", "json"],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    try:
        heard = _until(ours, b"> ", "")
        os.write(ours, b"Say hello.\n")
        heard = _until(ours, b"\n> ", heard)
        os.write(ours, b"\x04")
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
        os.close(ours)
    said = heard.replace("\r", "").removeprefix("> Say hello.\n").removesuffix("> ")
    assert said.strip(), heard
    assert child.returncode == 0
    assert b"tools: add_note, calculate, calendar" in errors
    assert b"llama" not in errors.replace(b"localagent", b"")


def _until(terminal: int, mark: bytes, before: str) -> str:
    heard, end = before.encode(), time.monotonic() + 90
    while not heard.endswith(mark) or len(heard) == len(before):
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, heard
        heard += os.read(terminal, 4096)
    return heard.decode()


@pytest.mark.parametrize("name", ["missing.gguf", "README.md"])
def test_a_file_that_cannot_be_used_is_one_line_and_a_non_zero_exit(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(ROOT / name)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    last = told.err.strip().splitlines()[-1]
    assert last.startswith("localagent: ")
    assert name in last
