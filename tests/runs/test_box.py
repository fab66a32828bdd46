"""H1, H2, Q1, Q4 in whole runs: when the sandbox is used, files on their way in, and what happens without it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from components.runner.default import DefaultRunner
from runner.sandbox import box as box_module
from tests.host import (
    Attachment,
    Box,
    Fault,
    Model,
    Reply,
    TestHost,
    Tool,
    ToolCall,
    full_manifest,
)

from .boxes import FAULTS, PDF, SANDBOX, boxed_host, making, run_command, save
from .scenes import counted, orphans


async def test_Q1_a_plain_message_takes_one_call_more_and_starts_no_sandbox() -> None:
    box = Box()
    plain = await TestHost(DefaultRunner(), manifest=full_manifest(), replies=["Hello!"]).say("hi")
    run = await boxed_host(box, replies=["Hello!"]).say("hi")
    assert run.answer == "Hello!"
    assert counted(run) == counted(plain) + 1
    assert box.keys == []
    assert run.calls.before_first_model_call.depth <= 2


async def test_Q1_one_file_in_and_one_out_takes_at_most_thirteen_calls() -> None:
    run = await boxed_host(Box(), replies=[save("summary.txt"), "Here it is."]).say("Summarise", attachments=[PDF])
    assert (run.answer, run.files) == ("Here it is.", ["summary.txt"])
    assert counted(run) <= 13


async def test_H1_switched_off_nothing_of_the_sandbox_is_asked_or_shown() -> None:
    host = boxed_host(Box(), replies=["Hi"], tools=[Tool("look")], config={"box-enabled": False})
    run = await host.say("hi", attachments=[PDF])
    assert run.requests[0].tool_names == ["look"]
    assert not [name for name in run.calls.names if "box" in name]
    assert "sandbox" not in run.requests[0].text


async def test_H1_without_a_backend_the_tools_are_not_shown_and_the_answer_comes() -> None:
    box = Box()
    host = boxed_host(box, replies=["Hi"])
    host.when("get_box_status", lambda: setattr(box, "available", False))
    run = await host.say("hi")
    assert run.answer == "Hi"
    assert not SANDBOX & set(run.requests[0].tool_names)
    assert any("No sandbox backend" in line for line in run.logs)


async def test_H1_the_first_sandbox_call_binds_once_however_many_come_together() -> None:
    box = Box()
    both = Reply(tool_calls=[ToolCall("exec", {"command": "a"}), ToolCall("exec", {"command": "b"})])
    run = await boxed_host(box, replies=[both, run_command(), "Done."]).say("go")
    assert run.answer == "Done."
    assert [run.calls.names.count(name) for name in ("acquire_box", "bind_box", "call_tool")] == [1, 1, 4]


async def test_H1_ordinary_tools_start_no_sandbox() -> None:
    box = Box()
    host = boxed_host(box, replies=[Reply(tool_calls=[ToolCall("look")]), "Done."], tools=[Tool("look")])
    await host.say("go")
    assert box.keys == []


async def test_H1_two_groups_have_two_sandboxes_and_one_chat_keeps_its_own() -> None:
    box = Box()
    host = boxed_host(
        box, models=[Model("m1", default=lambda request: "ok" if request.roles[-1] == "tool" else run_command())]
    )
    for conversation in ("group_1", "group_2", "group_1"):
        await host.say("go", conversation=conversation)
    first, second, third = box.keys
    assert first == third != second


async def test_H1_a_managed_deployment_gets_the_key_it_demands() -> None:
    box = Box(required_reuse_key="global")
    run = await boxed_host(box, replies=[run_command(), "Done."]).say("go")
    assert (run.answer, box.keys) == ("Done.", ["global"])


async def test_H1_a_managed_deployment_takes_files_too() -> None:
    box = Box(required_reuse_key="global")
    run = await boxed_host(box, replies=["Read."]).say("read", attachments=[PDF])
    assert box.keys == ["global"]
    assert f"/workspace/inbox/{run.run_id}-attachment-0/report.pdf" in run.requests[0].last_user


async def test_H1_when_the_sandbox_cannot_start_the_call_is_told_and_its_tools_vanish() -> None:
    host = boxed_host(Box(limit=0), replies=[run_command(), "Without it then."], tools=[Tool("look")])
    run = await host.say("go")
    assert run.answer == "Without it then."
    assert "sandbox cannot be used now" in run.requests[1].text
    assert (set(run.requests[0].tool_names) >= SANDBOX, run.requests[1].tool_names) == (True, ["look"])
    assert run.requests[1].violations() == []
    assert any("Box session limit reached" in line for line in run.logs)


async def test_H1_when_no_tool_is_left_the_history_has_no_calls_either() -> None:
    host = boxed_host(Box(limit=0), replies=["Hi.", run_command(), "Without it then."])
    await host.say("hello")
    run = await host.say("go")
    assert run.answer == "Without it then."
    assert (run.requests[1].tool_names, run.requests[1].roles) == ([], ["system", "user", "assistant", "user"])
    assert "go" in run.requests[1].last_user and "sandbox cannot be used now" in run.requests[1].last_user


async def test_H2_files_are_named_with_their_place_in_the_sandbox() -> None:
    box = Box()
    run = await boxed_host(box, replies=["Read."]).say("read this", attachments=[PDF])
    path = f"/workspace/inbox/{run.run_id}-attachment-0/report.pdf"
    assert path in box.files
    assert f"[file: report.pdf, 12 bytes, {path}]" in run.requests[0].last_user


async def test_H2_a_file_that_fails_is_named_and_the_others_go_on() -> None:
    box = Box(failing_imports=frozenset({"attachment-1"}))
    files = [PDF, Attachment("bad.bin", "AAAA"), Attachment("more.csv", "YSxi")]
    run = await boxed_host(box, replies=["Read."]).say("read", attachments=files)
    said = run.requests[0].last_user
    assert "attachment-0/report.pdf]" in said and "attachment-2/more.csv]" in said
    assert "[file: bad.bin, 3 bytes, could not be put into the sandbox]" in said
    assert run.calls.names.count("import_box_attachments") == 3


async def test_H2_files_are_imported_one_by_one() -> None:
    box = Box()
    host = boxed_host(box, replies=["Read."])
    under_way, most = 0, 0

    async def slowly(data: dict[str, Any]) -> dict[str, Any]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        (ref,) = data["attachment_ids"]
        return {"items": [{"id": ref, "name": ref, "type": "File", "size": 3, "path": f"/workspace/inbox/{ref}"}]}

    host.answer_with("import_box_attachments", slowly)
    run = await host.say("read", attachments=[Attachment("same.txt", f"YWJ{place}") for place in range(12)])
    assert (most, run.calls.names.count("import_box_attachments")) == (1, 12)
    assert all(
        f"[file: same.txt, 3 bytes, /workspace/inbox/attachment-{place}]" in run.requests[0].last_user
        for place in range(12)
    )


async def test_H2_a_file_that_hangs_costs_its_own_time_and_all_of_them_together_no_more_than_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_module, "IMPORT_SECONDS", 0.2)
    files = [Attachment(f"{place}.txt", f"YWJ{place}") for place in range(9)]
    host = boxed_host(Box(), replies=["Read.", "Read."])
    host.fail("import_box_attachments", Fault.hang())
    one = await host.say("read", attachments=files)
    assert one.requests[0].last_user.count("could not be put into the sandbox") == 1
    monkeypatch.setattr(box_module, "IMPORTS_SECONDS", 0.5)
    host.fail("import_box_attachments", Fault.hang(), times=None)
    all_of_them = await host.say("read", attachments=files)
    assert all_of_them.requests[0].last_user.count("could not be put into the sandbox") == 9
    assert all_of_them.calls.names.count("import_box_attachments") <= 3


async def test_H2_a_picture_is_seen_and_has_a_place() -> None:
    run = await boxed_host(Box(), replies=["Nice."]).say("look", images=["aGk="])
    content = run.requests[0].messages[-1]["content"]
    assert [part["type"] for part in content].count("image_url") == 1
    assert "attachment-0/" in run.requests[0].last_user


ACTIONS = ["get_box_status", "acquire_box", "bind_box", "import_box_attachments", "export_box_files"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
async def test_Q4_whatever_box_call_fails_an_answer_comes(action: str, fault: Fault) -> None:
    box = Box()
    making(box, **{"a.txt": b"a", "b.txt": b"b"})
    host = boxed_host(box, tools=[Tool("look")], replies=[run_command(), "The answer."])
    host.fail(action, fault)
    files = [] if action == "get_box_status" else [PDF]
    run = await host.say("go", attachments=files)
    assert run.status == "completed"
    assert run.answer is not None and run.answer.startswith("The answer.")
    assert host.faults.unused == []
    assert len([kind for kind in run.types if kind in ("run.completed", "run.failed")]) == 1
    assert all(request.violations() == [] for request in run.requests)
    assert await orphans(host) == []
    if fault.kind == "slow":
        assert run.files == ["a.txt", "b.txt"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
async def test_Q4_a_box_call_that_always_fails_costs_no_answer_and_the_next_run_is_unaffected(
    action: str, fault: Fault
) -> None:
    box = Box()
    making(box, **{"a.txt": b"a"})
    turns = [run_command(), "The answer."]
    host = boxed_host(box, tools=[Tool("look")], replies=[*turns, *turns])
    host.fail(action, fault, times=None)
    files = [] if action == "get_box_status" else [PDF]
    run = await host.say("go", attachments=files)
    assert host.faults.unused == []
    assert run.status == "completed"
    assert run.answer is not None and run.answer.startswith("The answer.")
    host.faults.clear()
    after = await host.say("go", attachments=files)
    assert (after.status, after.answer, after.files) == ("completed", "The answer.", ["a.txt"])
    assert await orphans(host) == []


@pytest.mark.parametrize("action", ACTIONS)
async def test_Q4_a_connection_that_is_gone_at_any_box_call_ends_the_run_alone(action: str) -> None:
    box = Box()
    making(box, **{"a.txt": b"a"})
    host = boxed_host(box, replies=[run_command(), "The answer.", "Still here."])
    host.fail(action, Fault.disconnect())
    run = await host.say("go", attachments=[] if action == "get_box_status" else [PDF])
    assert (run.status, run.completed) == ("failed", [])
    assert run.notice is not None
    after = await host.say("again")
    assert after.status == "completed"
    assert await orphans(host) == []


@pytest.mark.parametrize("action", ACTIONS)
async def test_Q4_a_stop_at_any_box_call_ends_the_run(action: str) -> None:
    box = Box()
    making(box, **{"a.txt": b"a"})
    host = boxed_host(box, replies=[run_command(), "The answer."])
    host.fail(action, Fault.hang())
    host.when(action, host.cancel)
    run = await host.say("go", attachments=[] if action == "get_box_status" else [PDF])
    assert run.status == "cancelled"
    assert await orphans(host) == []
