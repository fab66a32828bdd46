"""`debug-dump`: faulty replies in a bounded file."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models.calls import RawCall
from runner.models.reply import Reply
from runner.run.dump import Dump, Recorder, record_of, what_is_wrong
from tests.host import Reply as Says
from tests.host import ToolCall
from tests.runs.weak import weak_host, weather
from tests.tools.offers import catalogue, offer
from tests.written import CITY, bare, says

TOOLS = catalogue(offer("get_weather", parameters=dict(CITY)))


def reply(*calls: RawCall, text: str = "", **more: Any) -> Reply:
    return replace(Reply(text, calls, "m1"), **more)


def call(name: str = "get_weather", arguments: str = '{"city": "Oslo"}', *, certain: bool = True) -> RawCall:
    return RawCall("c1", name, arguments, certain=certain)


@pytest.mark.parametrize(
    ("faulty", "wrong"),
    [
        (reply(text="It is sunny."), ()),
        (reply(call()), ()),
        (reply(call("load_tool", '{"name": "x"}')), ()),
        (reply(call(certain=False)), ("repaired",)),
        (reply(call(arguments='{"city": "Oslo"')), ("repaired",)),
        (reply(call(arguments="{}")), ("invalid_arguments",)),
        (reply(call("get_whether")), ("unknown_tool",)),
        (reply(faults=("cut_off",)), ("cut_off",)),
        (reply(chanted=True), ("repeats_itself",)),
        (reply(call(arguments="{}"), call(arguments="{}")), ("invalid_arguments",)),
    ],
)
def test_S1_what_was_refused_or_repaired_is_known_by_a_word(faulty: Reply, wrong: tuple[str, ...]) -> None:
    assert what_is_wrong(faulty, TOOLS) == wrong


def test_a_record_has_what_a_new_case_needs() -> None:
    record = record_of(reply(call(arguments="{}"), raw='<tool_call>{"name"'), TOOLS, ("invalid_arguments",))
    assert (record["model"], record["wrong"], record["reply"]) == ("m1", ["invalid_arguments"], '<tool_call>{"name"')
    assert record["calls"] == [{"name": "get_weather", "arguments": "{}"}]
    assert record["tools"] == [{"name": "get_weather", "parameters": dict(CITY)}]


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnopqrstuvwx",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSM",
        "hunter2hunter2",
        "gsk_abcdefghijklmnopqrstuvwx",
        "1234567890:AAabcdefghijklmnopqrstuvwxyz0123456",
    ],
)
@pytest.mark.parametrize(
    "around",
    ['{{"password": "{}"}}', "api_key={}", "Authorization: Bearer {}", "the token: {} is mine", '{{"api-key":"{}"}}'],
)
def test_what_looks_like_a_key_or_a_password_is_never_written(secret: str, around: str) -> None:
    said = around.format(secret)
    record = record_of(reply(call(arguments=said), text=said), TOOLS, ("x",))
    assert secret not in json.dumps(record)
    assert "[hidden]" in json.dumps(record)


@pytest.mark.parametrize(
    "text",
    [
        "1234567890:AAabcdefghijklmnopqrstuvwxyz0123456",
        "see https://ann:hunter2@example.com/x",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_a_log_line_hides_is_hidden_here_too(text: str) -> None:
    record = json.dumps(record_of(reply(call(), text=text), TOOLS, ("x",)))
    assert "[hidden]" in record
    assert "hunter2" not in record and "AAabcdef" not in record


def test_the_file_is_for_its_own_user_alone(tmp_path: Path) -> None:
    dump = Dump(tmp_path / "dump")
    dump.write({"reply": "é 你好"})
    assert stat.S_IMODE(dump.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(dump.path.parent.stat().st_mode) == 0o700
    assert json.loads(dump.path.read_text("utf-8")) == {"reply": "é 你好"}


@settings(max_examples=30)
@given(st.lists(st.integers(0, 900), max_size=40))
def test_the_file_stays_within_its_limit_and_the_oldest_go_first(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("dump")
    dump = Dump(folder, limit=1_000)
    for number, size in enumerate(sizes):
        dump.write({"number": number, "reply": "x" * size, "tools": []})
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 1_000
        assert f'"number": {number}' in dump.path.read_text().splitlines()[-1]


def test_a_link_or_a_folder_of_somebody_else_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "replies.jsonl").symlink_to(victim)
    with pytest.raises(OSError):
        Dump(tmp_path / "dump").write({"a": 1})
    (tmp_path / "linked").symlink_to(tmp_path / "dump")
    with pytest.raises(OSError, match="belongs to somebody else"):
        Dump(tmp_path / "linked").write({"a": 1})
    assert victim.read_text() == "precious"


async def test_Q4_a_record_that_cannot_be_written_is_one_line_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    logs, warnings = list[str](), list[str]()
    recorder = Recorder(Dump(tmp_path / "file" / "dump"), logs.append, warnings.append)
    for _ in range(3):
        await recorder.hear(reply(call("get_whether")), TOOLS)
    assert (logs, len(warnings)) == ([], 1)
    assert "could not be recorded" in warnings[0]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "localagent-replies" / "replies.jsonl"


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_a_run_records_its_faulty_replies_and_says_where(here: Path) -> None:
    broken = '<tool_call>{"name": "get_weather", "arguments": {"town": "Oslo"}}</tool_call>'
    host = weak_host(broken, bare("get_weather", city="Oslo"), says("Sunny."), tools=[weather()], debug_dump=True)
    run = await host.say("Weather in Oslo?")
    assert run.final_text == "Sunny."
    assert [(record["wrong"], record["reply"]) for record in records(here)] == [(["invalid_arguments"], broken)]
    assert any(str(here) in log for log in run.logs)


async def test_a_native_call_that_is_broken_is_recorded_too(here: Path) -> None:
    calls = Says(tool_calls=[ToolCall("get_weather", {"town": "Oslo"})])
    host = weak_host(calls, "Sorry.", tools=[weather()], profile="standard", form="native", debug_dump=True)
    await host.say("Weather in Oslo?")
    (record,) = records(here)
    assert record["wrong"] == ["invalid_arguments"]
    assert record["calls"] == [{"name": "get_weather", "arguments": '{"town": "Oslo"}'}]


async def test_without_the_field_nothing_is_written(here: Path) -> None:
    host = weak_host("<tool_call>{", says("Sorry."), tools=[weather()])
    await host.say("Weather in Oslo?")
    assert not here.parent.exists()


async def test_Q4_a_full_disk_never_harms_a_run(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Dump, "write", full)
    host = weak_host(bare("get_weather"), says("Sorry."), tools=[weather()], debug_dump=True)
    run = await host.say("Weather in Oslo?")
    assert run.final_text == "Sorry."
    assert any("No space left" in log for log in run.logs)
