"""Weak models on the test host: settings, replies as they write them, and what no chat may ever show."""

from __future__ import annotations

from typing import Any

from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Parts
from tests.host import Box, Model, Reply, RunRecord, TestHost, Tool, full_manifest
from tests.written import CITY

MARKUP = ("tool_call", '"arguments"', "reply_to_user", "```", "tool_response", "load_tool")


def weather(result: Any = "It is sunny and 21 degrees.", **given: Any) -> Tool:
    """A tool with one argument that is required."""
    return Tool("get_weather", takes_dict=True, fn=lambda _: result, parameters=CITY, **given)


def act(name: str = "save_note", result: Any = "ok", **given: Any) -> Tool:
    """A tool that does something: no read by its name."""
    return Tool(name, takes_dict=True, fn=result if callable(result) else lambda _: result, parameters=CITY, **given)


def weak_host(
    *replies: Any,
    tools: list[Tool],
    profile: str = "small",
    form: str = "json",
    parts: Parts = EVERY_PART,
    box: Box | None = None,
    **config: Any,
) -> TestHost:
    """A host whose binding has this profile and format; `config` keys with underscores are fields with dashes.

    `parts`: what of the small profile is on.
    """
    fields = {name.replace("_", "-"): value for name, value in config.items()}
    return TestHost(
        runner=DefaultRunner(parts=parts),
        manifest=full_manifest(),
        box=box,
        models=[Model("m1", list(replies))],
        tools=tools,
        config={"model-profile": profile, "tool-call-format": form, "date-grounding": False, **fields},
    )


def in_pieces(text: str) -> Reply:
    """The same text, a few characters at a time."""
    return Reply(text, chunks=max(1, len(text) // 3))


def assert_no_markup(run: RunRecord) -> None:
    """Nothing of a call's markup was ever shown, not even in passing."""
    for shown in (*run.deltas, run.final_text or ""):
        assert not any(mark in shown for mark in MARKUP), shown
