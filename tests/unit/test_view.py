"""H1, S4: tools that come and go while a request is being made."""

from __future__ import annotations

import asyncio
from typing import Any

from runner.context.budget import Budget
from runner.context.compaction import Context, View
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import System, Text, UserTurn
from runner.view import RunView

EXEC, LOOK, JOB = (ToolSpec(name, "", {}) for name in ("exec", "look", "job_output"))


class Fitting:
    """A context that fits everything, once it is let go."""

    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate
        self.asked = asyncio.Event()

    async def fit(self, view: View, **_given: Any) -> Any:
        self.asked.set()
        await self._gate.wait()
        return type("Fitted", (), {"view": view, "tokens": 1, "request": Request(view.system, view.units, view.tools)})


async def test_H1_a_tool_that_is_lost_while_a_request_is_made_is_gone_from_the_next() -> None:
    gate = asyncio.Event()
    fitting: Any = Fitting(gate)
    context: Context = fitting
    view = RunView(View(System(), (), (EXEC, LOOK)), context, lambda _model: Budget.of(1_000, 100))
    view.ask(UserTurn((Text("hi"),)))
    making = asyncio.create_task(view.request("m1", visible=False))
    await fitting.asked.wait()
    view.withdraw(["exec"])
    gate.set()
    assert (await making).tools == (EXEC, LOOK)
    view.offer(JOB)
    assert (await view.request("m1", visible=False)).tools == (LOOK, JOB)
