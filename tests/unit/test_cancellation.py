"""I4, G2: a stop is noticed without being in the way, and none is lost that comes together with an answer.

The SDK's own handler waits here, and the test stands at its place where an answer arrives."""

from __future__ import annotations

import asyncio
import heapq
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.resources import AgentResources
from langbot_plugin.api.proxies.runner import RunnerAPIProxy
from langbot_plugin.entities.io.actions.enums import ActionType
from langbot_plugin.entities.io.errors import ConnectionClosedError
from langbot_plugin.entities.io.resp import ActionResponse, ChunkStatus
from langbot_plugin.runtime.io.handler import STREAM_WINDOW

from runner.host import cancellation
from runner.host.cancellation import closed
from runner.host.errors import HostCallFailed, HostFailure, RunCancelled
from runner.host.events import Completed, Event, Failed
from runner.host.port import Host, ModelCall, ProxyHost
from runner.run import interrupt
from runner.run.interrupt import PollBudget, watch
from tests.host.plugin import files_folder
from tests.host.steered import run_steered
from tests.host.wire import InlineCodec, connect
from tests.unit.border import RUN_ID, STOP, Handler, context, events_of, host_over, said, text_frame

# I4: a cancellation that comes together with the Host's answer, whatever that answer is.
#
# The SDK's own handler waits here, and the test stands at its place where an answer arrives: on Python 3.11 the
# handler forgets a cancellation that comes in the same turn of the loop as the answer.

CALL = ModelCall("a", ())
PAGE = {"items": [], "has_more": False}
BOX = {"id": "b", "status": "running"}
FILE = {"id": "f", "name": "f", "type": "file", "size": 1}
BINDING = {"box_id": "b", "outbox": "/o"}
RUN = {"run_id": "r", "status": "running"}


async def streamed(host: Host) -> object:
    async with aclosing(host.stream(CALL)) as events:
        return [event async for event in events]


async def left_at_once(host: Host) -> object:
    """A stream that is closed by its reader after its first event, as a runaway reply is."""
    async with aclosing(host.stream(CALL)) as events:
        return await anext(events)


async def replied(host: Host) -> object:
    async with host.reply_stream() as update:
        return await update("all of it")


Method = Callable[[Host], Awaitable[object]]
METHODS: dict[str, tuple[Method, dict[str, Any]]] = {
    "prompt": (lambda host: host.prompt(), {"prompt": []}),
    "history_page": (lambda host: host.history_page(limit=5), PAGE),
    "count_tokens": (lambda host: host.count_tokens(CALL), {"tokens": 5}),
    "stream": (streamed, {"chunk": {"role": "assistant", "content": "a"}}),
    "invoke": (lambda host: host.invoke(CALL), {"message": {"role": "assistant", "content": "a"}, "usage": None}),
    "call_tool": (lambda host: host.call_tool("t", {}), {"result": "found"}),
    "reply_stream": (replied, {"result": {"delivery": "streaming"}}),
    "reply_files": (lambda host: host.reply_files(["f"]), {"result": {}}),
    "retrieve": (lambda host: host.retrieve("kb", "q", 3), {"results": []}),
    "rerank": (lambda host: host.rerank("a", "q", ["d"], 1), {"results": [{"index": 0, "relevance_score": 1.0}]}),
    "box_status": (lambda host: host.box_status(), {"enabled": True, "available": True}),
    "acquire_box": (lambda host: host.acquire_box("k"), BOX),
    "bind_box": (lambda host: host.bind_box("b"), BINDING),
    "import_attachment": (lambda host: host.import_attachment("ref"), {"items": [FILE]}),
    "export_files": (lambda host: host.export_files(["/o/f"]), {"items": [FILE]}),
    "steering": (lambda host: host.steering(), {"items": []}),
    "cancel_requested": (lambda host: host.cancel_requested(), RUN),
    "runs": (lambda host: host.runs(), PAGE),
    "has_taken": (lambda host: host.has_taken(3), {"items": []}),
    "get_state": (lambda host: host.get_state("k"), {"value": None}),
    "delete_state": (lambda host: host.delete_state("k"), {"success": True}),
    "set_state": (lambda host: host.set_state("k", 1), {"success": True}),
}
"""Each call a run can make, and an answer to it."""

BAD: dict[str, ActionResponse | Exception] = {
    "an error": ActionResponse.error("database is locked"),
    "a time-out": ActionResponse.error("ActionCallTimeoutError: Action x call timed out"),
    "another shape": ActionResponse.success({"prompt": 5, "items": 5, "tokens": "x", "chunk": 5}),
    "a broken connection": ConnectionClosedError("Connection closed"),
}


class Wire(InlineCodec):
    """The plugin's end of a connection whose other end is the test."""

    def __init__(self) -> None:
        end, self.far_end, _ = connect()
        super().__init__(end, file_storage_dir=files_folder())
        self.name = "Plugin"

    @property
    def waiting(self) -> bool:
        return bool(self.resp_waiters or self.resp_queues)

    async def asked(self) -> None:
        """Wait until a call is in flight."""
        async with asyncio.timeout(5):
            while not self.waiting:  # noqa: ASYNC110 - the SDK tells nobody
                await asyncio.sleep(0)
        for _ in range(3):  # until it waits for its answer
            await asyncio.sleep(0)

    def answer(self, answer: ActionResponse | Exception) -> None:
        """What comes over the wire, to every call in flight."""
        for waiter in [waiter for waiter in self.resp_waiters.values() if not waiter.done()]:
            if isinstance(answer, Exception):
                waiter.set_exception(answer)
            else:
                waiter.set_result(answer)
        for queue in self.resp_queues.values():
            queue.put_nowait(answer)


def granted() -> RunnerContext:
    """A context in which everything may be asked for."""
    ctx = context()
    ctx.resources = AgentResources.model_validate(
        {
            "models": [{"model_id": "a"}],
            "tools": [{"tool_name": "t"}, {"tool_name": "event_reply"}],
            "knowledge_bases": [{"kb_id": "kb"}],
        }
    )
    for api in ("run_events_page", "run_list", "reply_stream"):
        setattr(ctx.context.available_apis, api, True)
    return ctx


def over(wire: Wire) -> ProxyHost:
    ctx = granted()
    return ProxyHost(RunnerAPIProxy(ctx, wire), ctx)


async def answered_while_cancelled(
    method: Method, answer: ActionResponse | Exception, *, before: int = 0, after: int = 0
) -> tuple[bool, asyncio.Future[object]]:
    """A call that is cancelled so many turns of the loop before or after its answer; with 0 and 0 in the turn of it.

    Whether it was still going on then, and the call, which is over.
    """
    wire = Wire()
    asking = asyncio.ensure_future(method(over(wire)))
    await wire.asked()
    going_on = bool(before) and asking.cancel()
    for _ in range(before - 1):
        await asyncio.sleep(0)
    wire.answer(answer)
    for _ in range(after):
        await asyncio.sleep(0)
    going_on = going_on or (not before and asking.cancel())
    for _ in range(20):
        await asyncio.sleep(0)
        wire.answer(ActionResponse.success({}))  # to whatever is asked on the way out
    assert asking.done(), "the call goes on"
    return going_on, asking


def test_I4_every_call_to_the_host_is_tried_here() -> None:
    calls = {name for name, _ in inspect.getmembers(Host, inspect.isfunction) if not name.startswith("_")}
    assert calls == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
async def test_I4_the_answers_of_this_table_are_answers(name: str) -> None:
    method, data = METHODS[name]
    wire = Wire()
    asking = asyncio.ensure_future(method(over(wire)))
    for _ in range(4):
        await wire.asked()
        wire.answer(ActionResponse.success(data))
        if wire.resp_queues:
            end = ActionResponse.success({})
            end.chunk_status = ChunkStatus.END
            wire.answer(end)
        await asyncio.wait({asking}, timeout=0.01)
        if asking.done():
            break
    asking.result()


@pytest.mark.parametrize("answer", ["success", *BAD])
@pytest.mark.parametrize("name", METHODS)
async def test_I4_a_cancellation_that_comes_with_an_answer_is_never_lost(name: str, answer: str) -> None:
    method, data = METHODS[name]
    came = BAD[answer] if answer in BAD else ActionResponse.success(data)
    for before, after in ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (0, 3)):
        going_on, asking = await answered_while_cancelled(method, came, before=before, after=after)
        assert asking.cancelled() == going_on, (before, after)
        assert going_on or after, "it was over before its answer"


@pytest.mark.parametrize("answer", ["success", *BAD])
async def test_I4_a_cancellation_that_comes_while_a_stream_is_closed_is_not_lost(answer: str) -> None:
    """Closing a stream asks the Host to break it off; on 3.11 the answer to that swallows a cancellation as well."""
    going_on = []
    for turns in range(5):
        wire = Wire()
        asking = asyncio.ensure_future(left_at_once(over(wire)))
        await wire.asked()
        wire.answer(ActionResponse.success(METHODS["stream"][1]))
        async with asyncio.timeout(5):
            while not wire.resp_waiters:  # noqa: ASYNC110 - the SDK tells nobody
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        wire.answer(BAD.get(answer, ActionResponse.success({})))
        for _ in range(turns):
            await asyncio.sleep(0)
        going_on.append(asking.cancel())
        await asyncio.wait({asking}, timeout=5)
        assert asking.cancelled() == going_on[-1], turns
    assert going_on[0]


async def test_Q4_a_call_that_the_other_side_broke_off_is_a_failure_like_any() -> None:
    for name in ("get_prompt", "run_get", "history_page", "call_tool"):
        host = host_over(Handler(answers={name: asyncio.CancelledError()}), granted())
        method = {"get_prompt": "prompt", "run_get": "cancel_requested"}.get(name, name)
        with pytest.raises(HostCallFailed) as told:
            await METHODS[method][0](host)
        assert told.value.kind is HostFailure.CONNECTION
    broken = host_over(Handler([[asyncio.CancelledError()]]), granted())
    with pytest.raises(HostCallFailed):
        await streamed(broken)


# Ending a task for certain


async def test_I4_a_task_that_lost_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "CANCEL_AGAIN", 0.01)
    lost = 0

    async def forgetful() -> None:
        nonlocal lost
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            lost += 1
        await asyncio.sleep(60)

    work = asyncio.create_task(forgetful())
    await asyncio.sleep(0)
    await closed(work)
    assert work.cancelled() and lost == 1


async def test_I4_a_stream_that_is_cancelled_while_it_confirms_what_it_read_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK confirms half a window of a stream inside its own generator, and waits for the next part at once."""
    monkeypatch.setattr(cancellation, "CANCEL_AGAIN", 0.01)
    wire = Wire()
    reading = asyncio.create_task(_read(over(wire)))
    await wire.asked()
    for index in range(1, STREAM_WINDOW // 2 + 1):
        part = ActionResponse.success(METHODS["stream"][1])
        part.stream_index = index
        wire.answer(part)
    async with asyncio.timeout(5):
        while not wire.resp_waiters:  # noqa: ASYNC110 - the SDK tells nobody
            await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
    for waiter in wire.resp_waiters.values():
        waiter.set_result(ActionResponse.success({}))
    async with asyncio.timeout(5):
        await closed(reading)
    assert reading.cancelled()


async def _read(host: Host) -> None:
    events: AsyncGenerator[object, None] = host.stream(CALL)
    async with aclosing(events) as owned:
        async for _ in owned:
            pass


class Deaf(Handler):
    """A Host whose stream loses the first cancellation, as the SDK's does while it confirms what it has read."""

    async def call_action_generator(
        self, action: ActionType, data: dict[str, Any], timeout: float = 15.0
    ) -> AsyncGenerator[object, None]:
        self.calls.append((action.value, data))
        self.streams_open += 1
        try:
            yield text_frame("The beginning")
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await asyncio.Event().wait()
        finally:
            self.streams_open -= 1


@pytest.mark.parametrize("answers", [{"run_get": STOP}, {}], ids=["stopped", "out of time"])
def test_I4_a_run_ends_although_a_stream_loses_its_cancellation(answers: dict[str, object]) -> None:
    handler = Deaf(answers=dict(answers))

    async def play() -> list[Event]:
        return await events_of(handler, context(config={"timeout": 60}), limit=100)

    events = run_steered(play())
    assert isinstance(events[-1], Failed if answers else Completed)
    assert said(events).startswith("The beginning")
    assert handler.streams_open == 0
    # One look at the flag stops the run; without one it is looked at once a second until its own end.
    assert len(handler.requests("run_get")) == 1 if answers else 50 < len(handler.requests("run_get")) < 60


# G2: noticing a stop, without ever being in the way.


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.floats(0, 0.4), max_size=120))
def test_G2_all_runs_together_poll_at_most_ten_times_in_any_second(pauses: list[float]) -> None:
    clock = Clock()
    budget = PollBudget(clock)
    taken = []
    for pause in pauses:
        clock.now += pause
        taken.append(clock.now + budget.turn())
    assert taken == sorted(taken)
    assert all(sum(at <= other < at + 1.0 for other in taken) <= 10 for at in taken)


def test_G2_the_eleventh_poll_of_a_second_waits_for_the_next() -> None:
    clock = Clock()
    budget = PollBudget(clock)
    assert [budget.turn() for _ in range(11)] == [0.0] * 10 + [1.0]
    clock.now = 2.5
    assert budget.turn() == 0.0


@pytest.mark.parametrize("runs", [5, 20, 50])
def test_G2_of_many_runs_each_is_polled_again_and_again(runs: int) -> None:
    """Twenty seconds of runs that ask again a second after each answer."""
    clock = Clock()
    budget = PollBudget(clock)
    waiting = [(number / runs, number) for number in range(runs)]
    polled = [0] * runs
    while (due := heapq.heappop(waiting))[0] < 20.0:
        clock.now, number = due
        answered = clock.now + budget.turn() + 0.002
        polled[number] += 1
        heapq.heappush(waiting, (answered + interrupt.INTERVAL, number))
    assert max(polled) - min(polled) <= 2
    assert min(polled) >= 3


@dataclass
class Polls:
    """What `run_get` answers, one after the other; the last one again and again."""

    script: list[object]
    seen: int = field(default=0)

    def __call__(self, _request: object) -> object:
        self.seen += 1
        return self.script[min(self.seen, len(self.script)) - 1]


RUNNING = {"run_id": RUN_ID, "status": "running"}
STOPPED = {**RUNNING, "cancel_requested_at": 1}


@pytest.mark.parametrize(
    "odd", [RuntimeError("gone"), ValueError("x"), TimeoutError(), {}, [], {"run_id": RUN_ID, "status": "?"}, None]
)
async def test_G2_a_poll_that_fails_or_hangs_changes_nothing_and_the_next_one_tells(
    odd: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.0)
    monkeypatch.setattr(interrupt, "_POLL_LIMIT", 0.05)
    polls = Polls([odd, RUNNING, STOPPED])
    host = host_over(Handler(answers={"run_get": polls}), context())
    async with asyncio.timeout(5):
        with pytest.raises(RunCancelled):
            await watch(host, PollBudget(asyncio.get_running_loop().time))
    assert polls.seen == 3


async def test_G2_a_host_that_offers_no_run_get_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupt, "INTERVAL", 0.0)
    handler = Handler()
    host = host_over(handler, context(apis={}))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await watch(host, PollBudget(asyncio.get_running_loop().time))
    assert handler.requests("run_get") == []
