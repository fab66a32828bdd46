"""C1, B4, C5, H1, S4, K7: one model turn over the real port, who may take over, and the tools it is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langbot_plugin.entities.io.errors import ActionCallError

from config.notices import Notice
from runner.channel.visible import Visible
from runner.context.budget import Budget
from runner.context.compaction import Context, View, Wishes
from runner.context.meter import Meter
from runner.context.tokens import Ruler, load_tokenizer
from runner.conversation.reduced import IMAGE_LEFT_OUT
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, Span, System, Text, ToolCall, ToolResult, UserTurn
from runner.host.errors import AllModelsFailed, ModelTrouble
from runner.host.events import Usage
from runner.loop.progress import Progress
from runner.loop.turn import BrokenOff, Turns
from runner.loop.view import RunView
from runner.models.fallback_order import Lineup, authorised
from runner.models.pool import Bench
from runner.models.refusals import MOST_REQUESTS, Step, steps_in
from tests.unit.border import (
    ASKED,
    GONE,
    NO_KEY,
    REFUSED,
    Handler,
    Script,
    context,
    english,
    finish_frame,
    host_over,
    text_frame,
    until,
    usage_frame,
)

# C1, B4, C5: one model turn over the real port; who may take over, and when.

TOKENIZER = asyncio.run(load_tokenizer())


class World:
    """One run's turns over a scripted Host."""

    def __init__(
        self,
        *replies: Script,
        models: Sequence[str] = ("a", "b"),
        image: bool = False,
        tools: tuple[ToolSpec, ...] = (),
        level: str | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        self.handler = Handler(replies or ((text_frame("fine"),),), dict(answers or {}))
        ctx = context(models=[{"model_id": name} for name in models])
        self.visible = Visible()
        self.shown: list[str] = []
        self.warnings: list[str] = []
        start = View(System((Text("be kind"),)), (), tools)
        self.view = RunView(start, self._context(), lambda _: Budget.of(200_000, 16_000))
        self.view.ask(UserTurn((Text("hi"), Image(base64="aGk=")) if image else (Text("hi"),)))
        levels = {models[0]: level} if level else {}
        lineup = Lineup(authorised(models, levels, ctx.resources.models))
        self.bench = Bench(host_over(self.handler, ctx), lineup, remove_think=False)
        progress = Progress(self.visible, self.shown.append, wanted=False)
        self.turns = Turns(
            self.bench,
            self.view,
            self.visible,
            self.shown.append,
            progress,
            english,
            self.warnings.append,
            refusals=self.bench.refusals,
        )

    def _context(self) -> Context:
        async def count(model_id: str, request: Request) -> int:
            return await self.bench.count(model_id, request)

        return Context(
            meter=Meter(count),
            ruler=Ruler(TOKENIZER),
            wishes=Wishes(20_000, 8_000),
            summarisers=(),
            now=lambda: 0.0,
            log=lambda _: None,
        )

    def models_asked(self) -> list[str]:
        return [sent["llm_model_uuid"] for sent in self.handler.requests(ASKED)]

    def messages(self, call: int) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = self.handler.requests(ASKED)[call]["messages"]
        return sent


async def test_C1_the_first_model_that_answers_answers() -> None:
    world = World([text_frame("hi "), text_frame("you")])
    reply = await world.turns.take()
    assert (reply.text, reply.model_id) == ("hi you", "a")
    assert world.shown == ["hi ", "hi you"] and world.models_asked() == ["a"]


@pytest.mark.parametrize("error", [NO_KEY, REFUSED, GONE, RuntimeError("x"), ActionCallError("x")], ids=str)
async def test_C1_a_failure_before_visible_content_hands_over_in_order(error: Exception) -> None:
    world = World([error], [error], [text_frame("from c")], models=("a", "b", "c"))
    assert (await world.turns.take()).model_id == "c"
    assert world.models_asked() == ["a", "b", "c"]


async def test_C1_white_space_and_thought_fields_are_no_visible_content() -> None:
    hidden = text_frame("", provider_specific_fields={"reasoning_content": "hm"})
    world = World([hidden, text_frame("\n\n"), GONE], [text_frame("ok")])
    assert (await world.turns.take()).text == "ok"
    assert world.visible.text == "ok"


async def test_C1_after_the_first_visible_letter_nobody_takes_over() -> None:
    world = World([text_frame("half"), GONE], [text_frame("never")])
    with pytest.raises(BrokenOff) as told:
        await world.turns.take()
    assert told.value.cause is ModelTrouble.NETWORK
    assert world.models_asked() == ["a"] and told.value.half == "half"
    assert world.visible.text == f"half\n\n{english(Notice.BROKEN_OFF_NOTE)}"


async def test_C1_the_model_that_answered_stays_for_the_run() -> None:
    world = World([NO_KEY], [text_frame("one")], [text_frame("two")])
    await world.turns.take()
    await world.turns.take()
    assert world.models_asked() == ["a", "b", "b"]
    assert world.visible.text == "one\n\ntwo"


async def test_C1_a_switch_is_possible_at_a_later_turn_too() -> None:
    world = World([text_frame("one")], [GONE], [text_frame("two")])
    await world.turns.take()
    assert (await world.turns.take()).model_id == "b"
    assert world.visible.text == "one\n\ntwo"


async def test_C1_an_empty_reply_counts_as_a_failure_of_that_model() -> None:
    world = World([text_frame(" \n"), finish_frame("stop")], [text_frame("ok")])
    assert (await world.turns.take()).model_id == "b"


async def test_C1_when_every_model_failed_each_failure_is_named() -> None:
    world = World([NO_KEY], [GONE])
    with pytest.raises(AllModelsFailed) as told:
        await world.turns.take()
    assert [(failure.model_id, failure.cause) for failure in told.value.failures] == [
        ("a", ModelTrouble.AUTH),
        ("b", ModelTrouble.NETWORK),
    ]


async def test_C6_an_empty_reply_of_the_last_model_is_an_answer_and_no_failure() -> None:
    world = World([NO_KEY], [])
    assert (await world.turns.take()).empty
    assert [line for line in world.warnings if "auth" in line]


async def test_C5_usage_of_failed_and_of_good_calls_adds_up() -> None:
    world = World([usage_frame(1, 2), GONE], [text_frame("ok"), usage_frame(10, 20, cached=5)])
    await world.turns.take()
    assert world.bench.usage == Usage(11, 22, 33, {"cached": 5})


async def test_C5_no_report_at_all_is_unknown_usage() -> None:
    world = World([text_frame("ok")])
    await world.turns.take()
    assert world.bench.usage is None


async def test_C5_usage_reported_before_a_stop_is_kept() -> None:
    world = World([text_frame("a"), usage_frame(1, 1), None])
    taking = asyncio.create_task(world.turns.take())
    await until(lambda: bool(world.shown))
    await asyncio.sleep(0.01)
    taking.cancel()
    with suppress(asyncio.CancelledError):
        await taking
    assert world.bench.usage == Usage(1, 1, 2, {})
    assert world.handler.streams_open == 0


async def test_B4_a_model_that_refuses_pictures_is_asked_again_without_and_told_so() -> None:
    world = World([REFUSED], [text_frame("ok")], image=True)
    assert (await world.turns.take()).model_id == "a"
    assert world.view.images_left_out and world.models_asked() == ["a", "a"]
    assert isinstance(world.messages(0)[-1]["content"], list)
    assert world.messages(1)[-1]["content"] == f"hi\n\n{IMAGE_LEFT_OUT}"


async def test_B4_pictures_are_left_out_once_then_the_fallback_is_asked() -> None:
    world = World([REFUSED], [REFUSED], [text_frame("ok")], image=True)
    assert (await world.turns.take()).model_id == "b"
    assert world.models_asked() == ["a", "a", "b"]


@pytest.mark.parametrize(
    "error", [NO_KEY, GONE, ActionCallError("Rate limit exceeded or insufficient balance")], ids=str
)
async def test_B4_a_failure_that_has_nothing_to_do_with_pictures_leaves_them_in(error: Exception) -> None:
    world = World([error], [text_frame("ok")], image=True)
    await world.turns.take()
    assert not world.view.images_left_out
    assert isinstance(world.messages(1)[-1]["content"], list)


async def test_B4_without_pictures_a_refusal_is_not_repeated() -> None:
    world = World([REFUSED], [text_frame("ok")])
    await world.turns.take()
    assert world.models_asked() == ["a", "b"]


async def test_C2_a_turns_provider_fields_come_back_only_to_its_author() -> None:
    world = World([text_frame("one", provider_specific_fields={"reasoning_content": "x"})], [GONE], [text_frame("two")])
    reply = await world.turns.take()
    world.view.add(AssistantTurn(reply.text, author=reply.model_id, provider_fields=reply.provider_fields))
    world.view.add(UserTurn((Text("and?"),)))
    await world.turns.take()
    own, others = world.messages(1)[-2], world.messages(2)[-2]
    assert own["provider_specific_fields"] == {"reasoning_content": "x"}
    assert others["provider_specific_fields"] is None


async def test_B5_neighbouring_user_turns_of_a_view_are_one_message() -> None:
    world = World([text_frame("ok")])
    world.view.add(UserTurn((Text("more"),)))
    await world.turns.take()
    assert [message["role"] for message in world.messages(0)] == ["system", "user"]
    assert world.messages(0)[-1]["content"] == "hi\n\nmore"


LEVEL_REFUSED = ActionCallError('ActionCallError: ValueError: Reasoning level "max" is not supported by model m')


@pytest.mark.parametrize("error", [LEVEL_REFUSED, REFUSED], ids=str)
async def test_C3_a_refused_level_is_left_out_for_the_rest_of_the_run(error: Exception) -> None:
    world = World([error], [text_frame("ok")], [text_frame("ok")], level="max")
    await world.turns.take()
    world.view.add(UserTurn((Text("and?"),)))
    await world.turns.take()
    assert world.models_asked() == ["a", "a", "a"]
    assert [sent.get("reasoning_level") for sent in world.handler.requests(ASKED)] == ["max", None, None]


async def test_C3_a_level_refused_again_without_a_level_is_a_failure_not_a_circle() -> None:
    world = World([LEVEL_REFUSED], [LEVEL_REFUSED], [text_frame("ok")], level="max")
    assert (await world.turns.take()).model_id == "b"
    assert world.models_asked() == ["a", "a", "b"]


async def test_C3_a_level_that_is_refused_with_the_count_is_left_out_too() -> None:
    def count(sent: dict[str, Any]) -> object:
        return LEVEL_REFUSED if "reasoning_level" in sent else {"tokens": 7}

    world = World([text_frame("ok")], level="max", answers={"count_tokens": count})
    assert (await world.turns.take()).model_id == "a"
    assert "reasoning_level" not in world.handler.requests(ASKED)[0]


async def test_C3_a_host_too_old_for_levels_is_asked_without() -> None:
    old = {"get_langbot_version": {"version": "4.10", "api_features": []}}
    world = World([text_frame("fine")], level="max", answers=old)
    assert (await world.turns.take()).text == "fine"


async def test_F2_a_count_that_the_host_never_makes_for_a_model_changes_nothing_in_the_request() -> None:
    def count(sent: dict[str, Any]) -> object:
        never = ActionCallError("this requester does not support token counting")
        return never if sent["llm_model_uuid"] == "a" else {"tokens": 7}

    world = World([text_frame("ok")], image=True, level="max", answers={"count_tokens": count})
    assert (await world.turns.take()).model_id == "b"
    assert len([sent for sent in world.handler.requests("count_tokens") if sent["llm_model_uuid"] == "a"]) == 1


CALLED = AssistantTurn("Looking.", (ToolCall("c1", "look", "{}"),), (ToolResult("c1", "look", "found"),))
BARE_LOOK = ToolSpec("look", "", {"type": "object", "properties": {}})
FIND = ToolSpec("find", "", {"type": "object", "properties": {"q": {"type": "string", "pattern": "x"}}}, altered=True)


@settings(max_examples=25, deadline=None)
@given(
    image=st.booleans(),
    level=st.sampled_from([None, "max"]),
    tools=st.sampled_from([(), (BARE_LOOK,), (BARE_LOOK, FIND)]),
    called=st.booleans(),
    conclude=st.booleans(),
)
def test_K7_no_request_is_sent_twice_none_six_times_and_the_next_model_gets_all_there_is(
    image: bool, level: str | None, tools: tuple[ToolSpec, ...], called: bool, conclude: bool
) -> None:
    async def refused_by_both() -> None:
        world = World([REFUSED], image=image, level=level, tools=tools)
        if called:
            world.view.add(CALLED)
        with pytest.raises(AllModelsFailed):
            await world.turns.take(conclude=conclude)
        asked = world.handler.requests(ASKED)
        by_model = {name: [sent for sent in asked if sent["llm_model_uuid"] == name] for name in ("a", "b")}
        for sent in by_model.values():
            assert 1 <= len(sent) <= MOST_REQUESTS
            assert len({json.dumps(one, sort_keys=True) for one in sent}) == len(sent)
        first, second = by_model["a"][0], by_model["b"][0]
        assert (first["messages"], first["funcs"]) == (second["messages"], second["funcs"])

    asyncio.run(refused_by_both())


# H1, S4, K7: tools that come and go while a request is made, and what is left out for one model.

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
