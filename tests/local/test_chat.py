"""The chat in the terminal: `python -m local MODEL.gguf`."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local import Error, Finish, MessageStart, Text, ToolCall, ToolError, ToolResult, create
from local.__main__ import main
from local.chat import Chat, plain, shown
from tests.written import tags

from .real import smallest
from .scripted import Scripted

ROOT = Path(__file__).resolve().parent.parent.parent


def chat(*replies: str) -> tuple[Chat, Scripted, list[str]]:
    provider, written = Scripted(*replies), list[str]()
    return Chat(create([provider]), written.append, lambda: datetime(2026, 3, 1, 12, 30, tzinfo=UTC)), provider, written


async def test_the_sample_tools_work_and_the_conversation_goes_on() -> None:
    talk, provider, written = chat(
        tags("get_time"),
        "It is half past twelve.",
        tags("add_note", text="buy milk"),
        "I added it.",
        "You are welcome.",
    )
    await talk.say("What time is it?")
    await talk.say("Add a note: buy milk")
    await talk.say("Thanks!")
    assert "".join(written) == (
        "[get_time {}]\nIt is half past twelve.\n[add_note {'text': 'buy milk'}]\nI added it.\nYou are welcome.\n"
    )
    assert talk.notes == ["buy milk"]
    told = [turn.content for turn in provider.requests[1].messages if turn.role == "tool"]
    assert "Sunday, 2026-03-01 12:30 UTC" in told[0]
    turns = provider.requests[-1].messages
    assert [turn.role for turn in turns] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant"),
        "user",
    ]


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
    assert b"tools: get_time, add_note" in errors
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
