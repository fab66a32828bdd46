"""Agents outside a pipeline, as whole runs see them (J1–J5): a host with one, and what holds for each of its runs."""

from __future__ import annotations

from typing import Any

from components.runner.default import DefaultRunner
from runner.channel.answering import EVENT_REPLY
from tests.host import Reply, RunRecord, TestHost, full_manifest, violations
from tests.host.host import TestHost as Host

ANSWER = "The kettle is in the left cupboard, behind the tea."


def agent(*, reply: str = "auto", config: dict[str, Any] | None = None, **given: Any) -> Host:
    settings = {"agent-reply": reply, "notice-language": "en_US", "date-grounding": False, **(config or {})}
    return TestHost(runner=DefaultRunner(), manifest=full_manifest(), mode="agent", config=settings, **given)


def in_pieces(text: str, pieces: int = 8, delay: float = 0.0) -> Reply:
    return Reply(text, chunks=pieces, chunk_delay=delay)


def streamed(run: RunRecord) -> list[tuple[str, str]]:
    """The operations of the run's reply stream, with their texts."""
    return [(call.data["operation"], call.data["text"]) for call in run.calls.of("reply_stream")]


def called(run: RunRecord) -> list[dict[str, Any]]:
    return [call.data["parameters"] for call in run.calls.of("call_tool") if call.data["tool_name"] == EVENT_REPLY]


def check(run: RunRecord, host: Host) -> None:
    """What holds for every run in this mode."""
    assert not run.deltas, "nobody sees deltas of a platform event"
    assert not run.dropped
    assert len(run.completed) <= 1
    if run.status != "cancelled":  # the Host stops reading at the first thing it hears after the wish
        assert run.types[-1] in ("run.completed", "run.failed")
    assert not [broken for request in run.requests for broken in violations(request.messages)]
    assert not run.calls.still_open
    assert len(host.world.platform.replies) == len(set(host.world.platform.replies)), "never a doubled reply"
