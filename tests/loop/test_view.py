"""H1, S4, K7: tools that come and go while a request is made, and what is left out for one model."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from runner.context.budget import Budget
from runner.context.compaction import Context, View
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, Span, System, Text, ToolCall, ToolResult, UserTurn
from runner.loop.view import RunView
from runner.models.refusals import Step, steps_in

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


class Cutting:
    """A context that cuts the oldest unit of every view and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[View] = []

    async def fit(self, view: View, **_given: Any) -> Any:
        self.given.append(view)
        question = None if view.question is None else view.question - 1
        kept = replace(view, units=view.units[1:], question=question, leaving=0)
        request = Request(view.system, (*view.opening, *kept.units), view.tools)
        return type("Fitted", (), {"view": kept, "tokens": 1, "request": request})


PICTURE = Image(base64="aGk=")
CALLED = AssistantTurn("Looking.", (ToolCall("c1", "look", "{}"),), (ToolResult("c1", "look", "found"),))
EVERYTHING = frozenset({Step.PICTURES, Step.TOOLS})


async def test_K7_what_is_cut_for_a_model_that_takes_less_is_cut_and_all_else_comes_back_for_the_next() -> None:
    older, asked = UserTurn((Text("old"), PICTURE), Span("1", "1")), UserTurn((Text("hi"), PICTURE))
    start = View(System((Text("be kind"), PICTURE)), (older, CALLED), (LOOK,), (older,), leaving=2)
    fitting: Any = Cutting()
    view = RunView(start, fitting, lambda _model: Budget.of(1_000, 100))
    view.ask(asked)
    less = await view.request("m1", visible=False, without=EVERYTHING)
    assert steps_in(less) == frozenset() and view.images_left_out
    sent = fitting.given[0]
    assert sent.question is not None and "hi" in sent.units[sent.question].text()
    assert sent.leaving == 3, "the reply with a call has become two units"
    whole = await view.request("m2", visible=False)
    second = fitting.given[1]
    assert second.units == (CALLED, asked) and second.question == 1 and second.leaving == 0
    assert (second.system, second.opening, second.tools) == (start.system, start.opening, start.tools)
    assert steps_in(whole) >= {Step.PICTURES, Step.TOOLS} and not view.images_left_out


async def test_K7_the_same_request_for_such_a_model_is_made_of_the_same_objects() -> None:
    gate = asyncio.Event()
    gate.set()
    fitting: Any = Fitting(gate)
    view = RunView(View(System(), (CALLED,), (LOOK,)), fitting, lambda _model: Budget.of(1_000, 100))
    view.ask(UserTurn((Text("hi"), PICTURE)))
    one, two = [await view.request("m1", visible=False, without=EVERYTHING) for _ in range(2)]
    assert all(unit is other for unit, other in zip(one.units, two.units, strict=True))


async def test_K7_a_schema_that_had_to_be_changed_goes_as_plain_as_can_be_or_not_at_all() -> None:
    gate = asyncio.Event()
    gate.set()
    schema = {"type": "object", "properties": {"q": {"type": "string", "pattern": "x"}}}
    odd, worse = (ToolSpec(name, "", schema | more, altered=True) for name, more in (("odd", {}), ("worse", NEEDS)))
    fitting: Any = Fitting(gate)
    view = RunView(View(System(), (), (LOOK, odd, worse)), fitting, lambda _model: Budget.of(1_000, 100))
    sent = await view.request("m1", visible=False, without={Step.SCHEMAS})
    assert [tool.name for tool in sent.tools] == ["look", "odd"]
    assert sent.tools[1].parameters == {"type": "object", "properties": {"q": {"type": "string"}}}
    assert (await view.request("m2", visible=False)).tools == (LOOK, odd, worse)


NEEDS: Any = {"required": ["place"]}


async def test_H1_where_the_last_tool_is_lost_calls_become_words() -> None:
    gate = asyncio.Event()
    gate.set()
    fitting: Any = Fitting(gate)
    view = RunView(View(System(), (CALLED,), (LOOK,)), fitting, lambda _model: Budget.of(1_000, 100))
    view.withdraw(["look"])
    assert steps_in(await view.request("m1", visible=False)) == frozenset()
