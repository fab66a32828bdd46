"""The fault table, and the same for any order of messages, presses and faults (M5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.runner.default import DefaultRunner
from tests.host import CardRefused, Fault, Model, ModelRequest, Reply, ToolCall
from tests.host.steered import run_steered

from .chats import chat, pay
from .table import FAULTS, STEPS, TABLE, play

GROUP = "group_1"


@pytest.mark.parametrize(("step", "fault"), list(product(STEPS, FAULTS)))
def test_M5_whatever_fails_the_tool_runs_once_at_most_and_never_without_consent(step: str, fault: str) -> None:
    ran, expected = run_steered(play(step, fault))
    assert ran == expected
    assert ran <= 1


def test_M5_the_table_is_whole() -> None:
    assert set(TABLE) == set(product(STEPS, FAULTS))


STEP = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from(["ann", "eve"])),
    st.tuples(st.just("say"), st.sampled_from(["ann", "eve"]), st.sampled_from(["yes", "no", "👍", "yes?"])),
    st.tuples(st.just("both"), st.sampled_from(["ann", "eve"])),
    st.tuples(
        st.just("press"), st.sampled_from(["ann", "eve"]), st.integers(0, 3), st.sampled_from(["agree", "refuse"])
    ),
    st.tuples(
        st.just("fail"),
        st.sampled_from(["state_set", "state_delete", "call_tool", "history_page"]),
        st.sampled_from(["error", "lost", "timeout", "doubled"]),
    ),
    st.tuples(st.just("restart")),
    st.tuples(st.just("reset")),
)


class Chat:
    """One group with two members. `agreed`: what was consented to at all, by the amount that was asked for."""

    def __init__(self) -> None:
        self.tool = pay()
        self.host = chat(self.tool, models=[Model("m1", default=self._model)], interactions=True)
        self.asked = 0
        self.askers: dict[int, str] = {}
        self.waiting: set[int] = set()
        self.agreed: set[int] = set()

    def _model(self, request: ModelRequest) -> Reply:
        newest = request.last_user
        if request.roles[-1] == "user" and "Pay" in newest and "agreed" not in newest:
            call = ToolCall("pay", {"to": "Bob", "amount": self.asked})
            return Reply("", tool_calls=[call])
        return Reply("Well.")

    async def ask(self, who: str) -> None:
        self.waiting = {amount for amount in self.waiting if self.askers[amount] != who}
        self.asked += 1
        self.askers[self.asked] = who
        await self.host.say(f"Pay {self.asked}", sender=who, conversation=GROUP)
        self.waiting.add(self.asked)

    async def say(self, who: str, text: str) -> None:
        own = {amount for amount in self.waiting if self.askers[amount] == who}
        if text in ("yes", "👍"):
            self.agreed |= own
        self.waiting -= own
        await self.host.say(text, sender=who, conversation=GROUP)

    async def both(self, who: str) -> None:
        """Two at once, and a press."""
        self.agreed |= {amount for amount in self.waiting if self.askers[amount] == who}
        runs = [self.host.start("yes", sender=who, conversation=GROUP) for _ in range(2)]
        if self.host.cards:
            with suppress(CardRefused):
                runs.append(self.host.start_press(self.host.cards[-1], sender=who))
        for run in runs:
            await run.wait()
        self.waiting -= {amount for amount in self.waiting if self.askers[amount] == who}

    async def press(self, who: str, at: int, action: str) -> None:
        if at >= len(self.host.cards):
            return
        try:
            run = self.host.start_press(self.host.cards[at], action, sender=who)
        except CardRefused:
            return
        if action == "agree":
            self.agreed |= {amount for amount in self.waiting if self.askers[amount] == who}
        await run.wait()

    async def fail(self, action: str, kind: str) -> None:
        faults = {"error": Fault.error(), "lost": Fault.lost(), "timeout": Fault.timeout(), "doubled": Fault.doubled()}
        self.host.fail(action, faults[kind])

    async def restart(self) -> None:
        await self.host.use(DefaultRunner())

    async def reset(self) -> None:
        self.host.reset(GROUP)
        self.waiting.clear()

    @property
    def ran(self) -> Counter[int]:
        return Counter(call["amount"] for call in self.tool.calls)


async def _played(steps: Sequence[tuple[object, ...]]) -> Chat:
    one = Chat()
    async with one.host:
        for name, *given_ in steps:
            await getattr(one, str(name))(*given_)
    return one


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEP, min_size=2, max_size=9))
def test_M5_in_any_order_each_call_runs_once_at_most_and_only_if_its_asker_agreed(
    steps: list[tuple[object, ...]],
) -> None:
    one = run_steered(_played([("ask", "ann"), *steps]))
    assert all(count == 1 for count in one.ran.values()), one.ran
    assert set(one.ran) <= one.agreed


def test_M5_the_property_sees_calls_that_run() -> None:
    one = run_steered(_played([("ask", "ann"), ("say", "ann", "yes"), ("ask", "eve"), ("press", "eve", 1, "agree")]))
    assert one.ran == Counter({1: 1, 2: 1})
