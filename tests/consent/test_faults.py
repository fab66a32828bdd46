"""M4, M5: what may change or go wrong between the question and the yes, in any order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.runner.default import DefaultRunner
from runner.consent.request import read
from runner.run import consenting
from tests.host import Box, CardRefused, Fault, Model, ModelRequest, Reply, Skill, TestHost, Tool, ToolCall
from tests.host.steered import run_steered
from tests.runs.scenes import assert_sound, results

from .table import FAULTS, PAY, PAY_SCHEMA, STEPS, TABLE, chat, open_keys, pay, play, ran

# What may have changed between the question and the yes (M4, M5).

DONE = Reply("Done.")
MAKE = Reply("", tool_calls=[ToolCall("exec", {"command": "make"})])


async def asked(**given: object) -> TestHost:
    host = chat(replies=[Reply("", tool_calls=[PAY]), DONE], **given)  # type: ignore[arg-type]
    await host.say("Pay Bob")
    assert ran(host) == []
    return host


async def test_M4_a_restart_or_an_upgrade_loses_nothing() -> None:
    host = await asked()
    await host.use(DefaultRunner())
    await host.say("yes")
    assert ran(host) == [{"to": "Bob", "amount": 5}]


async def test_M4_a_tool_that_is_gone_is_not_run_and_the_person_is_told() -> None:
    host = await asked()
    host.world.tools.clear()
    run = await host.say("yes")
    await assert_sound(host, run)
    assert "[Not run, since it is gone or no longer what was shown: pay]" in (run.final_text or "")
    assert (ran(host), open_keys(host)) == ([], [])


@pytest.mark.parametrize(
    "other",
    [
        Tool("pay", parameters={**PAY_SCHEMA, "required": ["to"]}),
        Tool("pay", parameters=PAY_SCHEMA, type="mcp"),
    ],
)
async def test_M4_a_tool_that_has_changed_is_not_run(other: Tool) -> None:
    host = await asked()
    host.world.tools[:] = [other]
    run = await host.say("yes")
    assert "no longer what was shown" in (run.final_text or "")
    assert ran(host) == []


async def test_M2_a_request_lapses_after_thirty_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    host = await asked()
    began = consenting.epoch()
    monkeypatch.setattr(consenting, "epoch", lambda: began + 30 * 60 + 1)
    run = await host.say("yes")
    assert "That request has lapsed" in (run.final_text or "")
    assert (ran(host), open_keys(host)) == ([], [])


async def test_M4_a_reset_conversation_has_nothing_to_agree_to() -> None:
    host = await asked()
    host.reset()
    await host.say("yes")
    assert ran(host) == []


async def test_M5_a_call_that_was_changed_after_it_was_shown_cannot_run() -> None:
    host = await asked()
    (key,) = open_keys(host)
    stored = host.state.get("conversation", "person_1", key)
    stored["calls"][0]["values"]["amount"] = 5000
    assert read(key, stored) is None
    host.state.set("conversation", "person_1", key, stored)
    await host.say("yes")
    assert ran(host) == []


async def test_M5_who_may_agree_goes_by_the_stricter_of_two_rules() -> None:
    host = chat(replies=[Reply("", tool_calls=[PAY]), DONE], config={"who-may-agree": "anyone"})
    await host.say("Pay Bob", sender="ann", conversation="group_1")
    host.config["who-may-agree"] = "asker"
    await host.say("yes", sender="eve", conversation="group_1")
    assert ran(host) == []


async def test_M2_a_request_that_was_saved_and_never_shown_cannot_be_agreed_to() -> None:
    host = chat(replies=[Reply("I pay.", tool_calls=[PAY]), "Hm?"])
    host.when("state_set", host.cancel)
    run = await host.say("Pay Bob")
    assert run.status in ("cancelled", "failed")
    await host.say("yes")
    assert ran(host) == []


async def test_M3_a_refusal_holds_although_the_request_could_not_be_removed() -> None:
    host = chat(replies=[Reply("", tool_calls=[PAY]), "Then not.", DONE])
    await host.say("Pay Bob")
    host.fail("state_delete", Fault.error(), times=2)
    await host.say("no")
    assert len(open_keys(host)) == 1
    await host.say("yes")
    assert ran(host) == []


async def test_M4_sandbox_calls_get_the_same_sandbox_again() -> None:
    host = chat(replies=[MAKE, DONE], box=Box(), config={"box-enabled": True})
    await host.say("make it")
    run = await host.say("yes")
    await assert_sound(host, run)
    assert ran(host, "exec") == [{"command": "make"}]
    assert run.calls.names.index("bind_box") < run.calls.names.index("call_tool")


async def test_M4_a_sandbox_that_ended_with_its_run_lapses_with_a_sentence() -> None:
    own = {"box-enabled": True, "box-session-id-template": "{run_id}"}
    host = chat(replies=[MAKE, DONE], box=Box(), config=own)
    await host.say("make it")
    run = await host.say("yes")
    assert ran(host, "exec") == []
    assert "no longer what was shown: exec" in (run.final_text or "")
    assert "Begin again" in results(run)[-1]


@pytest.mark.parametrize("gone", [False, True])
async def test_M4_a_skill_is_activated_again_or_its_calls_lapse(gone: bool) -> None:
    first = Reply("", tool_calls=[ToolCall("activate", {"skill_name": "build"})])
    replies = [first, MAKE, DONE]
    host = chat(replies=replies, box=Box(), skills=[Skill("build", "builds")], config={"box-enabled": True})
    await host.say("build it")
    assert len(ran(host, "activate")) == 1, "it never asks"
    if gone:
        host.world.skills.all.clear()
    run = await host.say("yes")
    assert len(ran(host, "exec")) == (0 if gone else 1)
    assert gone or json.dumps(run.calls.of("call_tool")[0].data).count("activate")


async def test_S_a_small_model_reads_the_call_in_its_own_format_when_it_goes_on() -> None:
    def model(request: ModelRequest) -> Reply:
        if "paid" in request.text:
            return Reply("It is paid.")
        return Reply('<tool_call>{"name": "pay", "arguments": {"to": "Bob", "amount": 5}}</tool_call>')

    small = {"model-profile": "small", "tool-call-format": "tags"}
    host = chat(pay(), replies=[model, model, model], config=small)
    run = await host.say("Pay Bob 5")
    assert "need your consent" in (run.final_text or "")
    last = await host.say("yes")
    assert len(ran(host)) == 1
    assert "<tool_call>" in last.requests[-1].text
    assert (last.final_text or "").endswith("It is paid.")


# The fault table, and the same for any order of messages, presses and faults (M5).

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
