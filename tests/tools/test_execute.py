"""D2, D3, D5, D7, D9, J3: running the calls of one turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json, Log, ToolFinished, ToolStarted
from runner.tools.catalogue import Catalogue
from runner.tools.execute import Batch, Executor, Outcome, ToolSlots
from runner.tools.prepare import WantedCall
from runner.tools.results import ErrorCode, Renderer
from tests.tools.offers import catalogue, offer

NUMBER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = catalogue(
    offer("work", parameters=NUMBER),
    offer("activate", "skill"),
    offer("event_kick_member", "platform", NUMBER),
    offer("event_mute_member", "platform", NUMBER),
    offer("event_reply", "platform", TEXT),
    offer("platform_send_message", "platform", TEXT),
    offer("event_get_group", "platform", {"type": "object"}),
    offer("untold"),
)


class World:
    """The Host's side of tool calls: answers, waits or fails as a call's arguments say, and watches who meets whom."""

    def __init__(self, answer: object = "done") -> None:
        self.answer = answer
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.met: set[frozenset[str]] = set()
        self.called: list[tuple[str, dict[str, Json]]] = []
        self.finished = 0
        self.crowd = 1
        self.crowded = asyncio.Event()
        self.gate: asyncio.Event | None = None
        self.failure: BaseException | None = None

    async def call(self, name: str, values: dict[str, Json]) -> object:
        self.called.append((name, values))
        self.met |= {frozenset((name, other)) for other, count in self.running.items() if count}
        self.running[name] += 1
        self.running["*"] += 1
        if self.running["*"] == self.crowd:
            self.crowded.set()
        for key in (name, "*"):
            self.most[key] = max(self.most[key], self.running[key])
        try:
            if self.failure:
                raise self.failure
            if self.gate:
                await self.gate.wait()
            number = values.get("n")
            for _ in range(number if isinstance(number, int) else 1):
                await asyncio.sleep(0)
            self.finished += 1
            return self.answer
        finally:
            self.running[name] -= 1
            self.running["*"] -= 1


class Run:
    """An executor with its events kept."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.events: list[ToolStarted | ToolFinished | Log] = []
        self.executor = Executor(
            world.call, Renderer(4_000), settings.pop("slots", None) or ToolSlots(), self.events.append, **settings
        )

    def batch(self, *wanted: WantedCall, tools: Catalogue = TOOLS) -> Batch:
        return self.executor.batch(wanted, tools)


def _call(number: int, name: str = "work", arguments: str = "{}", **more: Any) -> WantedCall:
    return WantedCall(f"c{number}", name, arguments, **more)


def _ids(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [outcome.result.call_id for outcome in outcomes]


async def test_D2_results_stand_in_the_order_of_the_calls_whoever_ends_first() -> None:
    run = Run(World())
    outcomes = await run.batch(_call(1, arguments='{"n": 9}'), _call(2), _call(3, arguments='{"n": 4}')).run()
    assert _ids(outcomes) == ["c1", "c2", "c3"]
    finished = [event.call_id for event in run.events if isinstance(event, ToolFinished)]
    assert finished == ["c2", "c3", "c1"]


async def test_D2_eight_calls_of_a_run_are_with_the_host_at_once() -> None:
    world = World()
    await Run(world).batch(*(_call(number, arguments='{"n": 3}') for number in range(30))).run()
    assert (world.most["*"], world.finished) == (8, 30)


async def test_D2_all_runs_of_a_worker_share_their_slots() -> None:
    world, slots = World(), ToolSlots(10)
    batches = [Run(world, slots=slots).batch(*(_call(n, arguments='{"n": 3}') for n in range(8))) for _ in range(5)]
    await asyncio.gather(*(batch.run() for batch in batches))
    assert (world.most["*"], world.finished) == (10, 40)


async def test_D2_serial_is_one_by_one_in_order() -> None:
    world = World()
    await Run(world, serial=True).batch(*(_call(n, arguments=f'{{"n": {9 - n}}}') for n in range(9))).run()
    assert world.most["*"] == 1
    assert [values["n"] for _, values in world.called] == list(range(9, 0, -1))


async def test_D2_activate_never_meets_activate_but_others_go_on() -> None:
    world = World()
    await Run(world).batch(_call(1, "activate"), _call(2, "activate"), _call(3), _call(4, "activate")).run()
    assert world.most["activate"] == 1
    assert frozenset(("activate", "work")) in world.met


async def test_J3_tools_that_change_things_never_meet_and_keep_their_order() -> None:
    world = World()
    names = ["event_kick_member", "event_mute_member", "event_reply", "event_kick_member"]
    await Run(world).batch(*(_call(number, name) for number, name in enumerate(names))).run()
    assert [name for name, _ in world.called] == names
    assert not {pair for pair in world.met if "*" not in pair}


async def test_J3_one_call_changes_things_once_even_in_a_later_batch() -> None:
    world = World()
    run = Run(world)
    await run.batch(_call(1, "event_kick_member")).run()
    again = await run.batch(_call(1, "event_kick_member")).run()
    assert len(world.called) == 1
    assert again[0].rendered.error is ErrorCode.LIMIT


async def test_J3_a_call_that_a_model_stammers_in_one_turn_changes_things_once() -> None:
    world = World()
    run = Run(world)
    twice = [_call(1, "event_kick_member", '{"n": 1}'), _call(2, "event_kick_member", ' {"n":1} ')]
    outcomes = await run.batch(*twice, _call(3, "event_kick_member", '{"n": 2}')).run()
    assert world.called == [("event_kick_member", {"n": 1}), ("event_kick_member", {"n": 2})]
    assert [outcome.rendered.error for outcome in outcomes] == [None, ErrorCode.LIMIT, None]
    assert [outcome.ran for outcome in outcomes] == [True, False, True]
    await run.batch(_call(4, "event_kick_member", '{"n": 1}')).run()
    assert len(world.called) == 3, "a later turn has read what came of it, and may mean it"


async def test_J3_a_call_that_undoes_the_one_before_it_is_no_stammer() -> None:
    world = World()
    names = ["event_mute_member", "event_kick_member", "event_mute_member"]
    await Run(world).batch(*(_call(number, name) for number, name in enumerate(names))).run()
    assert [name for name, _ in world.called] == names


@pytest.mark.parametrize("name", ["event_reply", "platform_send_message"])
async def test_K4_what_is_sent_is_sent_once_for_one_wish(name: str) -> None:
    world = World()
    run = Run(world)
    same = [_call(number, name, '{"text": "a"}') for number in range(3)]
    outcomes = await run.batch(*same, _call(3, "event_mute_member"), _call(4, name, '{ "text":"a" }')).run()
    assert [called for called, _ in world.called] == [name, "event_mute_member"]
    assert [outcome.rendered.error for outcome in outcomes] == [None, *[ErrorCode.LIMIT] * 2, None, ErrorCode.LIMIT]
    again = await run.batch(_call(0, name, '{"text": "b"}')).run()
    assert again[0].rendered.error is ErrorCode.LIMIT, "one id is one call, also in a later batch"
    await run.batch(_call(5, name, '{"text": "a"}')).run()
    assert len(world.called) == 3, "a later turn has read what came of it, and may mean it"


async def test_K4_two_messages_that_differ_are_both_sent_and_other_tools_run_as_often_as_called() -> None:
    world = World()
    sent = [_call(number, "event_reply", f'{{"text": "{number % 2}"}}') for number in range(3)]
    await Run(world).batch(*sent, _call(3), _call(4), _call(5, "event_get_group"), _call(6, "event_get_group")).run()
    assert len(world.called) == 7


@pytest.mark.parametrize(
    "call",
    [
        _call(1, "event_kick_member", '{"n": 1'),
        _call(1, "event_kick_member", '{"n": "1"}'),
        _call(1, "event_kick_member", '{"m": 1}'),
        _call(1, "event_kick_member", '{"n": 1}', certain=False),
        _call(1, "event_kick_membr", '{"n": 1}'),
    ],
)
async def test_J3_nothing_mended_reaches_a_tool_that_changes_things(call: WantedCall) -> None:
    world = World()
    outcome = (await Run(world).batch(call).run())[0]
    assert world.called == []
    assert outcome.rendered.error in {ErrorCode.INVALID_ARGUMENTS, ErrorCode.UNKNOWN_TOOL}
    assert not outcome.ran


async def test_D3_a_broken_call_says_what_was_expected_and_spares_its_neighbours() -> None:
    world = World()
    run = Run(world)
    outcomes = await run.batch(
        _call(1, arguments='{"n": "cut'), _call(2), _call(3, "wrok"), _call(4, arguments="[]")
    ).run()
    assert [outcome.ran for outcome in outcomes] == [False, True, False, False]
    assert outcomes[0].result.text.startswith("Error [invalid_arguments]: ")
    assert '"integer"' in outcomes[0].result.text
    assert outcomes[0].call.arguments == "{}"
    assert outcomes[1].rendered.error is None
    assert outcomes[2].result.text.startswith("Error [unknown_tool]: ")
    assert "work" in outcomes[2].result.text
    assert len(world.called) == 1


async def test_D3_arguments_against_the_schema_do_not_run() -> None:
    world = World()
    await Run(world).batch(_call(1, arguments='{"n": "x"}')).run()
    assert world.called == []


async def test_K5_fields_given_to_a_tool_that_takes_none_are_dropped_and_noted_once() -> None:
    world = World()
    run = Run(world)
    stray = [_call(number, "event_get_group", '{"_call": "look up"}') for number in range(3)]
    first = await run.batch(*stray).run()
    await run.batch(_call(4, "event_get_group", '{"x": 1}'), _call(5, "event_get_group", "null")).run()
    assert world.called == [("event_get_group", {})] * 5
    assert first[0].call.arguments == "{}", "a model imitates what stands in the history"
    (note,) = [event.text for event in run.events if isinstance(event, Log)]
    assert "event_get_group" in note and "look up" not in note


async def test_K5_a_tool_of_which_the_host_told_no_schema_gets_all_but_what_no_tool_would_take() -> None:
    world = World()
    run = Run(world)
    await run.batch(_call(1, "untold", '{"n": 1, "_call": "x"}')).run()
    assert world.called == [("untold", {"n": 1})]


async def test_J3_a_tool_that_acts_is_not_run_without_what_may_say_on_what() -> None:
    world = World()
    run = Run(world)
    leave = catalogue(offer("event_leave_group", "platform", {"type": "object", "additionalProperties": False}))
    await run.batch(_call(1, "event_leave_group", '{"group": 5}'), tools=leave).run()
    assert world.called == []
    await run.batch(_call(2, "event_leave_group", '{"_call": "leave"}'), tools=leave).run()
    assert world.called == [("event_leave_group", {})]


async def test_D1_the_host_is_asked_by_its_own_name() -> None:
    world = World()
    tools = catalogue(offer("get.weather"))
    await Run(world).batch(WantedCall("c", tools.entries[0].name, ""), tools=tools).run()
    assert world.called == [("get.weather", {})]


async def test_D7_each_call_is_told_as_started_and_finished_refused_ones_too() -> None:
    run = Run(World({"a": 1}))
    await run.batch(_call(1, arguments='{"n": 2}'), _call(2, "nothing")).run()
    started = {event.call_id: event for event in run.events if isinstance(event, ToolStarted)}
    finished = {event.call_id: event for event in run.events if isinstance(event, ToolFinished)}
    assert dict(started["c1"].arguments) == {"n": 2}
    assert (finished["c1"].result, finished["c1"].error) == ({"a": 1}, None)
    assert finished["c2"].result is None
    assert (finished["c2"].error or "").startswith("unknown_tool: ")


@pytest.mark.parametrize("kind", list(HostFailure))
async def test_D9_a_failure_of_the_host_is_a_result(kind: HostFailure) -> None:
    world = World()
    world.failure = HostCallFailed("call_tool", kind, "the <|im_end|> words")
    outcome = (await Run(world).batch(_call(1)).run())[0]
    expected = ErrorCode.TIMEOUT if kind is HostFailure.TIMEOUT else ErrorCode.FAILED
    assert outcome.rendered.error is expected
    assert outcome.ran
    assert "<|im_end|>" not in outcome.result.text


async def test_D9_an_accident_in_one_call_is_its_result_alone() -> None:
    world = World()
    world.failure = KeyError("secret")
    outcomes = await Run(world).batch(_call(1), _call(2)).run()
    assert [outcome.rendered.error for outcome in outcomes] == [ErrorCode.FAILED] * 2
    assert "secret" not in outcomes[0].result.text


async def test_D9_a_slow_call_times_out_alone() -> None:
    world = World()
    world.gate = asyncio.Event()
    outcomes = await Run(world, call_seconds=0.01).batch(_call(1), _call(2, "nothing")).run()
    assert outcomes[0].rendered.error is ErrorCode.TIMEOUT
    assert outcomes[0].ran
    assert world.running["*"] == 0


async def test_D9_the_deadline_of_the_run_closes_every_call() -> None:
    world = World()
    world.gate = asyncio.Event()
    run = Run(world, serial=True)
    until = asyncio.get_running_loop().time() + 0.01
    outcomes = await run.batch(_call(1), _call(2), _call(3, "nothing")).run(until=until)
    assert [outcome.rendered.error for outcome in outcomes] == [ErrorCode.TIMEOUT] * 3
    assert [outcome.ran for outcome in outcomes] == [True, False, False]
    assert world.running["*"] == 0


async def test_D9_a_batch_cancelled_from_outside_still_has_every_result() -> None:
    world = World()
    world.gate, world.crowd = asyncio.Event(), 8
    run = Run(world)
    batch = run.batch(*(_call(n) for n in range(12)))
    task = asyncio.create_task(batch.run())
    await world.crowded.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _ids(batch.outcomes()) == [f"c{n}" for n in range(12)]
    assert sum(outcome.ran for outcome in batch.outcomes()) == 8
    assert sum(isinstance(event, ToolFinished) for event in run.events) == 12
    assert len(asyncio.all_tasks()) == 1


async def test_D5_a_batch_that_all_terminates_says_so_and_a_mixed_one_does_not() -> None:
    run = Run(World({"terminate": True}))
    whole = run.batch(_call(1), _call(2))
    mixed = run.batch(_call(3), _call(4, "nothing"))
    await whole.run()
    await mixed.run()
    assert whole.all_terminate()
    assert not mixed.all_terminate()
    assert not run.batch().all_terminate()


async def test_D4_a_huge_result_is_rendered_without_holding_the_loop() -> None:
    run = Run(World(["x" * 100] * 200_000))
    outcome = (await run.batch(_call(1)).run())[0]
    assert len(outcome.result.text) <= 4_000
    assert outcome.rendered.truncated


_names = st.sampled_from(["work", "activate", "event_kick_member", "nothing"])
_arguments = st.sampled_from(["", '{"n": 1}', '{"n": 7}', '{"n": "x"}', '{"n": 2', '{"n": "cut'])


@given(
    st.lists(st.tuples(_names, _arguments), max_size=14),
    st.booleans(),
    st.integers(0, 12),
    st.booleans(),
)
@settings(max_examples=120)
def test_D9_every_call_has_exactly_one_result_in_order_however_it_ends(
    calls: list[tuple[str, str]], serial: bool, steps: int, cancelled: bool
) -> None:
    async def scenario() -> None:
        world = World()
        run = Run(world, serial=serial)
        batch = run.batch(*(WantedCall(f"c{n}", name, text) for n, (name, text) in enumerate(calls)))
        task = asyncio.create_task(batch.run())
        for _ in range(steps):
            await asyncio.sleep(0)
        if cancelled:
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            assert cancelled
        assert _ids(batch.outcomes()) == [f"c{n}" for n in range(len(calls))]
        started = [event.call_id for event in run.events if isinstance(event, ToolStarted)]
        finished = [event.call_id for event in run.events if isinstance(event, ToolFinished)]
        if task.cancelled() and not started:
            return  # cancelled before it began: nothing was told, and every call still has its result
        assert sorted(started) == sorted(finished) == sorted(f"c{n}" for n in range(len(calls)))
        assert world.most["activate"] <= 1
        assert world.most["event_kick_member"] <= 1
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scenario())
