"""A tool that takes its time, and what a weak model says around it."""

from __future__ import annotations

import asyncio
from typing import Any

from runner.small.part import Part, all_but
from runner.tools.jobs import JOB_OUTPUT
from tests.host import RunRecord, Tool
from tests.written import CITY, bare, says

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
