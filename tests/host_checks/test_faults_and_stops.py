"""Every way a call can fail as the plugin sees it; steering, cancelling, deadlines, the idle rule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import Fault, Reason, Reply, TestHost

from .probes import Probe, completed, delta, error_of, user

# Every way a call can fail, as the plugin sees it.


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


# Steering, cancelling, deadlines, the idle rule.


async def test_a_message_during_a_run_is_claimed_stored_and_pulled_in_order() -> None:
    host = TestHost()

    async def pull(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[list[str | None]]:
        assert host.steer("one", sender="u2")
        assert host.steer("two", images=["AA=="])
        assert not host.steer("elsewhere", conversation="person_9")
        first = await api.steering_pull(mode="one")
        rest = await api.steering_pull()
        assert first.items[0].actor is not None
        assert first.items[0].actor.actor_id == "u2"
        assert rest.items[0].input.attachments[0].ref is None
        return [[item.input.text for item in pulled.items] for pulled in (first, rest)]

    probe = Probe(pull)
    await host.use(probe)
    run = await host.say("hi")
    assert probe.seen == [[["one"], ["two"]]]
    assert [row.text for row in host.transcript()] == ["hi", "one", "two", "done"]
    assert [word for _, word in run.steering] == ["queued", "queued", "injected", "injected"]
    assert not host.steer("too late")


async def test_steering_that_is_not_pulled_is_dropped_and_a_limit_of_0_is_an_error() -> None:
    host = TestHost()

    async def ignore(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        host.steer("anyone there?")
        return await error_of(api.steering_pull(limit=0))

    probe = Probe(ignore)
    await host.use(probe)
    run = await host.say("hi")
    assert [word for _, word in run.steering] == ["queued", "dropped"]
    assert probe.seen[0].message == "ActionCallError: limit must be > 0"


async def test_the_flag_is_seen_in_run_get_and_stops_the_run_after_the_next_result() -> None:
    closed: list[str] = []
    host = TestHost()

    async def go_on(api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        try:
            before = await api.run_get()
            host.cancel()
            after = await api.run_get()
            closed.append(f"{before.cancel_requested_at is None} {after.cancel_requested_at is not None}")
            yield delta(ctx, "Hel")
            await asyncio.sleep(5)
            yield completed(ctx, "Hello")
        finally:
            closed.append("closed")

    await host.use(Probe(go_on))
    run = await host.say("hi")
    assert closed == ["True True", "closed"]
    assert (run.status, run.notice, run.answer) == ("cancelled", None, "Hel")


async def test_a_failure_the_runner_reports_itself_is_failed_with_a_hint_even_when_cancelled() -> None:
    host = TestHost()

    async def fail(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        host.cancel()
        yield RunnerResult.run_failed(ctx.run_id, "cancelled", "cancelled")

    await host.use(Probe(fail))
    run = await host.say("hi")
    assert run.status == "failed"
    assert run.notice is not None


async def test_the_deadline_closes_the_runner_and_the_run_times_out() -> None:
    async def linger(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        yield delta(ctx, "Hel")
        await asyncio.sleep(30)

    run = await TestHost(Probe(linger), config={"timeout": 0.2}).say("hi")
    assert (run.status, run.code) == ("timeout", "runner.timeout")
    assert run.answer == "Agent runner temporarily unavailable. Please try again."


async def test_past_the_deadline_the_proxy_does_not_call_at_all() -> None:
    seen: list[Any] = []

    async def late(api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        ctx.runtime.deadline_at = 1.0
        seen.append(await error_of(api.get_prompt()))
        yield RunnerResult.run_completed(ctx.run_id)

    run = await TestHost(Probe(late)).say("hi")
    assert (seen[0].code, len(run.calls)) == ("deadline_exceeded", 0)


async def test_timeout_0_means_no_deadline_but_the_idle_rule() -> None:
    async def silent(_api: RunnerAPIProxy, ctx: RunnerContext) -> AsyncIterator[RunnerResult]:
        for _ in range(3):
            await asyncio.sleep(0.1)
            yield RunnerResult(run_id=ctx.run_id, type="processor.log", data={"text": "alive"})
        await asyncio.sleep(30)

    run = await TestHost(Probe(silent), config={"timeout": 0}, idle_limit=0.3).say("hi")
    assert run.ctx["runtime"]["deadline_at"] is None
    assert run.logs == ["alive"] * 3
    assert (run.status, run.code) == ("failed", "runner.timeout")


async def test_the_stored_timeout_is_read_as_the_host_reads_it() -> None:
    deadlines = {}
    for value in (None, "abc", -1, 0):
        run = await TestHost(config={"timeout": value}).say("hi")
        deadlines[value] = run.ctx["runtime"]["deadline_at"]
    assert set(deadlines.values()) == {None}
    assert (await TestHost().say("hi")).ctx["runtime"]["deadline_at"] is not None
    assert (await TestHost(config={"timeout": "60"}).say("hi")).ctx["runtime"]["deadline_at"] is not None


async def test_a_background_task_cannot_outlive_the_run() -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    tasks = []

    async def start(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        async def later() -> None:
            await asyncio.sleep(0.1)
            try:
                await api.get_prompt()
            except Exception as error:  # noqa: BLE001  # whatever the SDK raises is the finding
                told.set_result(str(error))

        tasks.append(asyncio.create_task(later()))

    async with TestHost(Probe(start)) as host:
        await host.say("hi")
        assert "invocation has ended" in await told


async def test_runs_of_one_conversation_at_once_are_kept_apart() -> None:
    async def slow(api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        await asyncio.sleep(0.05)
        return (await api.run_get()).run_id == ctx.run_id

    probe = Probe(slow)
    host = TestHost(probe)
    started = [host.start(f"hello {number}", conversation=f"person_{number}") for number in range(20)]
    for run in started:
        await run.wait()
    assert probe.seen == [True] * 20
    assert [run.calls.names for run in started] == [["run_get"]] * 20
    assert [row.text for row in host.transcript("person_7")] == ["hello 7", "done"]


async def test_a_task_that_a_runner_leaves_behind_is_found() -> None:
    left: list[asyncio.Task[None]] = []

    async def leave(_api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        left.append(asyncio.create_task(asyncio.sleep(30)))

    host = TestHost(Probe(leave))
    await host.say("hi")
    assert await host.orphans() == left
    left[0].cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert await host.orphans() == []
