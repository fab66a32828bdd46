"""Chats with a sandbox: a host with one, what a model does in it, and the ways its calls fail."""

from __future__ import annotations

from typing import Any

from components.runner.default import DefaultRunner
from tests.host import (
    Attachment,
    Box,
    Fault,
    ModelRequest,
    Reply,
    TestHost,
    ToolCall,
    full_manifest,
)

SANDBOX = {"exec", "read", "write", "edit", "glob", "grep"}
PDF = Attachment("report.pdf", "JVBERi0xLjQ=")


FAULTS = [
    Fault.error(),
    Fault.timeout(),
    Fault.hang(0.05),
    Fault.drop(),
    Fault.lost(),
    Fault.malformed(),
    Fault.malformed({"id": 3, "outbox": "/", "box_id": "x", "items": "none", "result": "no"}),
    Fault.slow(0.02),
]


def boxed_host(box: Box, **given: Any) -> TestHost:
    config = {"box-enabled": True, **given.pop("config", {})}
    return TestHost(DefaultRunner(), manifest=full_manifest(), box=box, config=config, **given)


def save(path: str = "out.txt", content: str = "hi") -> Any:
    """A reply that writes a file into the outbox it was told of."""

    def reply(request: ModelRequest) -> Reply:
        return Reply(tool_calls=[ToolCall("write", {"path": f"{outbox_in(request)}/{path}", "content": content})])

    return reply


def run_command() -> Reply:
    return Reply(tool_calls=[ToolCall("exec", {"command": "make"})])


def outbox_in(request: ModelRequest) -> str:
    return next(word for word in request.text.split() if word.startswith("/workspace/outbox/"))


def making(box: Box, **files: bytes) -> None:
    """Each `exec` leaves these files in the outbox of the newest run."""

    def make(_given: dict[str, Any]) -> dict[str, Any]:
        for name, body in files.items():
            box.files[f"/workspace/outbox/{list(box.bindings)[-1]}/{name}"] = body
        return {"ok": True, "exit_code": 0, "stdout": "", "stderr": ""}

    box.exec = make
