"""Every way a call can fail, as the plugin sees it."""

from __future__ import annotations

from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import Fault, Reason, Reply, TestHost

from .probes import Probe, error_of, user


async def failing(fault: Fault) -> Any:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.get_prompt())

    probe = Probe(ask)
    host = TestHost(probe)
    host.fail("get_prompt", fault)
    run = await host.say("hi")
    assert (run.status, host.faults.unused, run.calls.still_open) == ("completed", [], [])
    return probe.seen[0]


@pytest.mark.parametrize(
    ("fault", "code", "text"),
    [
        (Fault.error("no"), "host.action_error", "ActionCallError: no"),
        (
            Fault.model(Reason.RATE_LIMIT),
            "host.action_error",
            "ActionCallError: RequesterError: Model request failed: Rate limit exceeded or insufficient balance",
        ),
        (Fault.timeout(), "host.action_error", "ActionCallTimeoutError: Action get_prompt call timed out"),
        (Fault.hang(0.02), "deadline_exceeded", "Action get_prompt call timed out"),
        (Fault.drop(), "host.action_error", "ConnectionClosedError: Connection closed"),
        (Fault.lost(), "runtime_error", "Connection closed"),
        (Fault.malformed(), "host.malformed_response", "get_prompt response missing required field: prompt"),
        (
            Fault.malformed({"prompt": "x"}),
            "host.malformed_response",
            "get_prompt response field prompt must be a list",
        ),
    ],
)
async def test_a_failing_call_has_the_code_and_text_of_the_real_host(fault: Fault, code: str, text: str) -> None:
    error = await failing(fault)
    assert (error.code, error.message) == (code, text)


async def test_slow_and_cancel_still_answer() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[Any]:
        await api.get_prompt()
        await api.get_prompt()
        return [(await api.run_get()).cancel_requested_at is not None]

    probe = Probe(ask)
    host = TestHost(probe)
    host.fail("get_prompt", Fault.slow(0.01))
    host.fail("get_prompt", Fault.cancel(), nth=2)
    run = await host.say("hi")
    assert probe.seen == [[True]]
    assert run.status == "cancelled"


async def test_the_nth_call_fails_and_so_do_as_many_after_it_as_planned() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> str:
        told = ""
        for _ in range(5):
            try:
                await api.get_prompt()
                told += "."
            except Exception:  # noqa: BLE001  # only whether it failed counts here
                told += "x"
        return told

    for times, expected in ((1, ".x..."), (2, ".xx.."), (None, ".xxxx")):
        probe = Probe(ask)
        host = TestHost(probe)
        host.fail("get_prompt", Fault.error(), nth=2, times=times)
        await host.say("hi")
        assert probe.seen == [expected]


async def test_a_stream_fails_after_some_items() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> tuple[list[Any], Any]:
        got: list[Any] = []

        async def rest() -> None:
            async for chunk in api.invoke_llm_stream("m1", [user("hi")]):
                got.append(chunk.content)

        return got, await error_of(rest())

    for fault, code in (
        (Fault.drop(after=2), "host.action_error"),
        (Fault.malformed(after=2), "host.malformed_response"),
        (Fault.hang(0.05, after=2), "deadline_exceeded"),
    ):
        probe = Probe(ask)
        host = TestHost(probe, replies=[Reply("abcd", chunks=4)])
        host.fail("invoke_llm_stream", fault)
        run = await host.say("hi")
        got, error = probe.seen[0]
        assert (got, error.code) == (["a", "b"], code)
        assert run.calls.still_open == []


async def test_a_closed_connection_ends_the_run_and_the_next_run_has_a_new_one() -> None:
    host = TestHost()
    host.fail("history_page", Fault.disconnect())
    broken = await host.say("hi")
    again = await host.say("again")
    assert broken.status == "failed"
    assert again.answer == "Echo: again"


async def test_the_work_of_a_timed_out_hop_goes_on_in_the_host() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.get_prompt())

    async def slowly(_data: Any) -> dict[str, Any]:
        import asyncio

        await asyncio.sleep(0.05)
        finished.append(True)
        return {"prompt": []}

    finished: list[bool] = []
    probe = Probe(ask)
    async with TestHost(probe, hop_limits={"get_prompt": 0.01}) as host:
        host.answer_with("get_prompt", slowly)
        await host.say("hi")
        assert probe.seen[0].message == "ActionCallTimeoutError: Action get_prompt call timed out"
        await host.idle()
        assert finished == [True]


def test_a_misspelt_action_is_refused() -> None:
    with pytest.raises(ValueError, match="not an action"):
        TestHost().fail("history_pages", Fault.error())


async def test_a_hook_runs_just_before_the_nth_call_goes_out() -> None:
    async def ask(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[bool]:
        return [(await api.run_get()).cancel_requested_at is not None for _ in range(3)]

    probe = Probe(ask)
    host = TestHost(probe)
    host.when("run_get", host.cancel, nth=2)
    await host.say("hi")
    assert probe.seen == [[False, True, True]]
