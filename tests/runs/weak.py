"""Weak models on the test host: settings, replies as they write them, and a tool that takes its time."""

from __future__ import annotations

import asyncio
from typing import Any

from components.runner.default import DefaultRunner
from runner.small.part import EVERY_PART, Part, Parts, all_but
from runner.tools.jobs import JOB_OUTPUT
from tests.host import Box, Model, Reply, RunRecord, TestHost, Tool, full_manifest
from tests.written import CITY, bare, says

# Weak models on the test host: settings, replies as they write them, and what no chat may ever show.

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


# A tool that takes its time, and what a weak model says around it.

BUILD = bare("build", city="Oslo")
ASK = bare(JOB_OUTPUT, job="job_1")
ENOUGH = says("It goes on.")
NO_SECOND_LOOK = all_but(Part.WRAP_UP)


class Slow:
    """A tool that ends when it is let go, or by itself long after a soft limit; `order` is what ended when."""

    def __init__(self, result: Any = "All built.", *, most: float = 0.5, **given: Any) -> None:
        self.gate = asyncio.Event()
        self.order: list[str] = []
        self.result = result
        self.most = most
        self.tool = Tool("build", fn=self._run, takes_dict=True, parameters=CITY, **given)

    async def _run(self, _values: Any) -> Any:
        try:
            async with asyncio.timeout(self.most):
                await self.gate.wait()
        except TimeoutError:
            pass
        self.order.append("slow")
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def quick(self, *, lets_go: bool = False) -> Tool:
        """Another tool, which may let the slow one go."""

        def look(_values: Any) -> str:
            self.order.append("quick")
            if lets_go:
                self.gate.set()
            return "It is sunny."

        return Tool("get_weather", fn=look, takes_dict=True, parameters=CITY)


def told(run: RunRecord, at: int) -> str:
    """What the newest turn of a request says."""
    return run.requests[at].last_user
