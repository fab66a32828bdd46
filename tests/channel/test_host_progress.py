"""G1: waiting until the Host has shown what it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from langbot_plugin.entities.io.errors import ActionCallError

from runner.channel import host_progress as backlog
from runner.channel.host_progress import caught_up
from runner.host.port import ProxyHost
from tests.unit.border import RUN_ID, Handler, context, host_over

Answer = Callable[[dict[str, object]], object]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "FIRST_PAUSE", 0.001)


def asked(answer: object) -> tuple[ProxyHost, Handler]:
    handler = Handler(answers={"run_events_page": answer})
    ctx = context()
    ctx.context.available_apis.run_events_page = True
    return host_over(handler, ctx), handler


def taken(sequence: int) -> dict[str, object]:
    return {"items": [{"run_id": RUN_ID, "sequence": sequence, "type": "processor.log"}]}


def soon() -> float:
    return asyncio.get_running_loop().time() + 5.0


async def test_G1_asks_for_the_one_result_until_the_host_has_come_to_it() -> None:
    left = [{"items": []}, {"items": []}, taken(7)]
    host, handler = asked(lambda _data: left.pop(0))
    await caught_up(host, 7, until=soon())
    assert left == []
    assert [(data["after_cursor"], data["limit"]) for data in handler.requests("run_events_page")] == [("6", 1)] * 3


async def test_L13_a_host_that_has_shown_all_by_the_first_look_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "FIRST_PAUSE", 60.0)
    host, handler = asked(lambda _data: taken(7))
    await caught_up(host, 7, until=soon())
    assert len(handler.requests("run_events_page")) == 1


async def test_Q4_a_host_that_refuses_is_asked_once() -> None:
    host, handler = asked(ActionCallError("ActionCallError: no"))
    await caught_up(host, 7, until=soon())
    assert len(handler.requests("run_events_page")) == 1


async def test_Q4_a_host_that_never_answers_is_given_up() -> None:
    host, handler = asked(None)
    await caught_up(host, 7, until=asyncio.get_running_loop().time() + 0.05)
    assert len(handler.requests("run_events_page")) == 1


async def test_G3_with_no_time_left_it_is_not_asked_at_all() -> None:
    host, handler = asked({"items": []})
    await caught_up(host, 7, until=asyncio.get_running_loop().time() - 1.0)
    assert handler.requests("run_events_page") == []
