"""F2: the Host's counts decide, each token is counted once, and a count that fails never becomes a guess."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.context.budget import Budget
from runner.context.meter import CountFailed, Meter, counting_unavailable
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import System, Text, Unit
from runner.host.errors import CountingUnavailable, HostCallFailed, HostFailure, ModelFailed, ModelTrouble
from tests.context.conversations import assistant, tool_turn, user

BUDGET = Budget(10_000, 1_000)
SYSTEM = System((Text("be helpful"),))
TOOL = ToolSpec("read", "reads", {"type": "object"})


class Host:
    """Counts 100 tokens a unit, 50 for a system message, 30 a tool, 3 for every call; fails as told."""

    def __init__(self, *failures: HostCallFailed | object) -> None:
        self.failures = list(failures)
        self.asked: list[tuple[str, int]] = []

    async def count(self, model: str, request: Request) -> int:
        self.asked.append((model, len(request.units)))
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, HostCallFailed):
                raise failure
            if failure is not None:
                return failure  # type: ignore[return-value]
        fixed = 50 if request.system.parts else 0
        return 3 + fixed + 30 * len(request.tools) + 100 * len(request.units)


def refused(text: str = "busy", kind: HostFailure = HostFailure.REFUSED) -> HostCallFailed:
    return HostCallFailed("count_tokens", kind, text)


async def test_F2_the_whole_request_is_counted_once_and_then_only_what_was_added() -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"), assistant("b"), user("c")), (TOOL,))
    assert await meter.measure(request, model="m", budget=BUDGET) == 383
    longer = replace(request, units=(*request.units, tool_turn("x"), user("more")))
    assert await meter.measure(longer, model="m", budget=BUDGET) == 383 + 203
    assert await meter.measure(longer, model="m", budget=BUDGET) == 586
    assert host.asked == [("m", 3), ("m", 2)]
    assert meter.calls == 2


@pytest.mark.parametrize("change", ["model", "system", "tools", "units", "fewer"])
async def test_F2_anything_but_added_units_is_counted_whole(change: str) -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"), assistant("b"), user("c")), (TOOL,))
    await meter.measure(request, model="m", budget=BUDGET)
    changed = {
        "model": request,
        "system": replace(request, system=replace(SYSTEM, summary="s")),
        "tools": replace(request, tools=()),
        "units": replace(request, units=(user("a"), *request.units[1:])),
        "fewer": replace(request, units=request.units[2:]),
    }[change]
    await meter.measure(changed, model="other" if change == "model" else "m", budget=BUDGET)
    assert host.asked[1] == ("other" if change == "model" else "m", len(changed.units))


async def test_F2_the_request_is_counted_whole_where_it_nears_the_budget_and_where_its_sum_exceeds_it() -> None:
    host = Host()
    meter = Meter(host.count)
    budget = Budget(1_000, 0)
    units: tuple[Unit, ...] = tuple(user(str(place)) for place in range(4))
    sizes: list[int] = []
    for _ in range(6):
        units = (*units, user("x"))
        sizes.append(await meter.measure(Request(SYSTEM, units), model="m", budget=budget))
    assert sizes == [553, 656, 759, 862, 953, 1053]
    assert host.asked == [("m", 5), *[("m", 1)] * 4, ("m", 9), ("m", 1), ("m", 10)]


async def test_F2_between_there_and_the_budget_only_what_was_added_is_counted() -> None:
    host = Host()
    meter = Meter(host.count)
    budget = Budget(1_000, 0)
    units: tuple[Unit, ...] = tuple(user(str(place)) for place in range(9))
    assert await meter.measure(Request(SYSTEM, units), model="m", budget=budget) == 953
    wider = Budget(1_058, 0)
    assert await meter.measure(Request(SYSTEM, (*units, user("x"))), model="m", budget=wider) == 1_056
    assert host.asked == [("m", 9), ("m", 1)]


async def test_Q1_a_hundred_tool_rounds_cost_a_hundred_and_one_counts() -> None:
    host = Host()
    meter = Meter(host.count)
    units: tuple[Unit, ...] = (user("go"),)
    budget = Budget(200_000, 16_384)
    for number in range(101):
        await meter.measure(Request(SYSTEM, units), model="m", budget=budget)
        units = (*units, tool_turn("r", number))
    assert meter.calls == 101


@pytest.mark.parametrize("first", [refused(), refused(kind=HostFailure.TIMEOUT), 0, -5, True, "12", None])
async def test_F2_a_count_that_fails_in_passing_is_tried_once_more(first: object) -> None:
    host = Host(first)
    meter = Meter(host.count)
    assert await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET) == 153
    assert meter.calls == (1 if first is None else 2)


async def test_F2_a_count_that_fails_twice_is_that_models_failure() -> None:
    meter = Meter(Host(refused(), refused("late", HostFailure.TIMEOUT)).count)
    with pytest.raises(ModelFailed) as caught:
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert (caught.value.model_id, caught.value.cause) == ("m", ModelTrouble.TIMEOUT)
    assert await meter.measure(Request(SYSTEM, (user("a"),)), model="n", budget=BUDGET) == 153


async def test_F2_counting_not_granted_ends_the_run_closed() -> None:
    meter = Meter(Host(refused("", HostFailure.DENIED)).count)
    with pytest.raises(CountingUnavailable):
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert CountingUnavailable.code == "runner.token_count_unavailable"


async def test_F2_a_model_the_host_cannot_count_for_is_not_asked_twice() -> None:
    text = "ActionCallError: Token counting failed: This requester does not support token counting"
    meter = Meter(Host(refused(text)).count)
    with pytest.raises(CountFailed) as caught:
        await meter.measure(Request(SYSTEM, (user("a"),)), model="m", budget=BUDGET)
    assert meter.calls == 1
    assert isinstance(counting_unavailable((caught.value,)), CountingUnavailable)
    assert counting_unavailable((caught.value, ModelFailed("n", ModelTrouble.AUTH, ""))) is None
    assert counting_unavailable(()) is None


async def test_F2_a_failed_count_leaves_the_last_good_one_in_place() -> None:
    host = Host()
    meter = Meter(host.count)
    request = Request(SYSTEM, (user("a"),))
    await meter.measure(request, model="m", budget=BUDGET)
    longer = replace(request, units=(*request.units, user("b")))
    host.failures = [refused(), refused()]
    with pytest.raises(ModelFailed):
        await meter.measure(longer, model="m", budget=BUDGET)
    assert await meter.measure(longer, model="m", budget=BUDGET) == 153 + 103
