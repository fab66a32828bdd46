"""C2, D9, K7: every request is legal for every provider, and one that is refused is changed step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.locales import Locale
from config.notices import Notice, say
from runner.models.pool import Bench
from runner.models.refusals import REMEMBERED
from runner.run import interrupt
from runner.run import run as a_run
from tests.host import Fault, Model, ModelRequest, Reason, Reply, RunRecord, TestHost, Tool, ToolCall, mcp_content

from .scenes import LOOK, PRIVATE, assert_sound, host_with, lost_steering, words

# Whatever models, tools, people and the Host do at once, every request is legal for every provider (C2, D9).
#
# One run is a script drawn by hypothesis: replies made of fragments whose ids repeat, are missing or change, tools
# that answer, fail, terminate or return pictures, follow-ups, broken streams, cancels.

IDS = ["", "", "c0", "c1", "call_0", "call 0", "x" * 80, "調用", "-_"]
NAMES = ["look", "look", "set", "stop", "picture", "nothing_like_it", "", "two words", "n" * 80, "調用"]
PIECES = [
    "",
    "{",
    "}",
    "{}",
    '{"n": 1}',
    '{"n"',
    ": 1}",
    ": 2",
    "[1]",
    '"x"',
    "{}{}",
    '{"n": 1}{"n": 2}',
    "\x00",
    "天",
    " ",
]
TEXTS = ["", "", " ", "\n", "Words.", "<think>a", "</think>b", "天气", "<|im_end|>"]
FINISH = [None, None, None, "stop", "tool_calls", "length"]
SAID = ["more", "", "  ", "还有", "<|im_start|>system"]


@dataclass(frozen=True)
class Turn:
    """One reply of the model, what people say meanwhile, and whether the stream breaks after some items."""

    events: list[dict[str, Any]]
    said: list[str]
    breaks_after: int | None


def chunk(**more: Any) -> dict[str, Any]:
    return {"chunk": {"role": "assistant", **more}}


def fragment(call_id: str, name: str, piece: str) -> dict[str, Any]:
    function = {"name": name, "arguments": piece}
    return chunk(tool_calls=[{"id": call_id, "type": "function", "function": function}])


fragments = st.builds(fragment, st.sampled_from(IDS), st.sampled_from(NAMES), st.sampled_from(PIECES))
texts = st.builds(lambda text: chunk(content=text or None), st.sampled_from(TEXTS))
thoughts = st.builds(
    lambda text: chunk(provider_specific_fields={"reasoning_content": text}), st.sampled_from(["hm", "", "天"])
)
ends = st.builds(
    lambda why: chunk(is_final=True, provider_specific_fields={"finish_reason": why}), st.sampled_from(FINISH)
)
items = st.one_of(fragments, fragments, fragments, texts, thoughts)
turns = st.builds(
    lambda body, end, said, breaks: Turn([*body, end], said, breaks),
    st.lists(items, min_size=0, max_size=7),
    ends,
    st.lists(st.sampled_from(SAID), max_size=2),
    st.one_of(st.none(), st.none(), st.none(), st.integers(0, 3)),
)


@dataclass(frozen=True)
class Script:
    turns: list[Turn]
    serial: bool
    tool_faults: list[int]
    cancel_at: int | None
    streams: bool


scripts = st.builds(
    Script,
    st.lists(turns, min_size=1, max_size=5),
    st.booleans(),
    st.lists(st.integers(1, 6), max_size=2, unique=True),
    st.one_of(st.none(), st.none(), st.integers(1, 6)),
    st.booleans(),
)


def tools(host: TestHost) -> list[Tool]:
    picture = mcp_content("see", {"type": "image_base64", "image_base64": "aGk="})
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return [
        Tool("look", takes_dict=True, fn=lambda values: host.steer("during look") and "" if values else None),
        Tool("set", takes_dict=True, fn=lambda values: values, parameters=schema),
        Tool("stop", takes_dict=True, fn=lambda _values: {"terminate": True}),
        Tool("picture", takes_dict=True, fn=lambda _values: picture, type="mcp"),
    ]


def model(host: TestHost, name: str, script: Script) -> Model:
    """Both models read one list of turns, so that a fallback goes on where the other broke."""

    def reply(turn: Turn) -> Any:
        def play(_request: object) -> Reply:
            for text in turn.said:
                host.steer(text)
            if turn.breaks_after is None:
                return Reply(events=turn.events)
            return Reply(events=[*turn.events[: turn.breaks_after], {"chunk": {"role": 3}}])

        return play

    operations = frozenset({"stream", "count_tokens"} if script.streams else {"invoke", "count_tokens"})
    return Model(name, replies=[reply(turn) for turn in script.turns], default="The end.", operations=operations)


async def play(script: Script) -> tuple[TestHost, RunRecord]:
    mode = "serial" if script.serial else "parallel"
    host = host_with(models=[Model("m1"), Model("m2")], config={"tool-execution-mode": mode})
    host.world.models[:] = [model(host, name, script) for name in ("m1", "m2")]
    host.world.tools[:] = tools(host)
    host.remember(("user", "Before"), ("assistant", "Then."), ("user", "Unanswered"))
    for nth in script.tool_faults:
        host.fail("call_tool", Fault.error(), nth)
    if script.cancel_at is not None:
        host.fail("count_tokens", Fault.cancel(), script.cancel_at)
    run = host.start("go")
    assert run.task is not None
    # Not `run.wait()`: the SDK may leave a Runner unclosed whose run the Host has stopped.
    await run.task
    return host, run


@pytest.fixture
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Host itself stops a cancelled run at its next result; polls would only make the runs less alike."""
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: 3_600.0)


@pytest.mark.usefixtures("no_polls")
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(script=scripts)
async def test_whatever_happens_in_a_run_every_request_of_it_and_of_the_next_is_legal(script: Script) -> None:
    host, run = await play(script)
    async with host:
        host.faults.clear()
        nxt = await host.say("and then?")
        for one in (run, nxt):
            broken = [str(broken) for request in one.requests for broken in request.violations(private=PRIVATE)]
            assert broken == []
            assert one.status in ("completed", "failed", "cancelled")
            assert one.dropped == []
            assert one.status == "cancelled" or one.calls.still_open == []
        assert run.finish_reason != "stop" or lost_steering(run) == []
        assert len([kind for kind in run.types if kind in ("run.completed", "run.failed")]) <= 1


# K7: a request that a model refuses without a reason is changed step by step before the next model is asked.

REFUSED = Reply(error=Reason.BAD_REQUEST)
LIMITED = Reply(error=Reason.RATE_LIMIT)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
ODD = {
    "type": "object",
    "properties": {
        "where": {"type": "string", "pattern": "^[A-Z]"},
        "what": {"type": "string", "enum": ["sea", "land"]},
    },
}


def takes(check: Callable[[ModelRequest], bool], answer: str = "Here.") -> Callable[[ModelRequest], Reply]:
    """A model whose provider refuses every other request, and says no more than that."""
    return lambda request: Reply(answer) if check(request) else REFUSED


def no_pictures(request: ModelRequest) -> bool:
    return "image_url" not in str(request.messages)


def no_tools(request: ModelRequest) -> bool:
    return not request.funcs


def no_tool_turns(request: ModelRequest) -> bool:
    return no_tools(request) and "tool" not in request.roles


def asked(run: object) -> list[str]:
    return [request.model for request in run.requests]  # type: ignore[attr-defined]  # a record of the test host


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("reason", [Reason.BAD_REQUEST, Reason.NOT_FOUND, Reason.API_ERROR, Reason.UNKNOWN])
async def test_K7_a_model_without_tools_answers_and_its_owner_reads_what_was_changed(
    reason: Reason, more: bool
) -> None:
    def reply(request: ModelRequest) -> Reply:
        return Reply("Here.") if no_tools(request) else Reply(error=reason)

    others = [Model("m0", default=Reply(error=Reason.RATE_LIMIT))]
    behind = [Model("m2")] if reason is Reason.BAD_REQUEST and more else []
    host = host_with(models=[*others, Model("m1", default=reply), *behind], tools=[words()])
    run = await host.say("go")
    assert run.final_text == "Here."
    assert asked(run) == ["m0", "m1", "m1"]
    assert [log for log in run.logs if "asked again without tools" in log]
    await assert_sound(host, run)


UNNAMED = [Reason.NOT_FOUND, Reason.API_ERROR, Reason.UNKNOWN]


@pytest.mark.parametrize("reason", [*UNNAMED, Reason.RATE_LIMIT, Reason.AUTHENTICATION, Reason.TIMEOUT])
async def test_K7_what_was_no_refusal_goes_straight_to_the_next_model(reason: Reason) -> None:
    models = [Model("m1", default=Reply(error=reason)), Model("m2", replies=["Here."])]
    run = await host_with(models=models, tools=[words()]).say("go", images=[PIXEL])
    assert asked(run) == ["m1", "m2"]
    assert run.requests[-1].tool_names == ["look"]
    assert not no_pictures(run.requests[-1])


async def test_K7_steps_come_in_their_order_none_is_sent_twice_and_the_next_model_gets_everything() -> None:
    tools = [words(), Tool("find", parameters=ODD)]
    config = {"model": {"primary": "m1", "fallbacks": ["m2"], "reasoning": {"m1": "high", "m2": "low"}}}
    host = host_with(models=[Model("m1", default=REFUSED), Model("m2", replies=["Here."])], tools=tools, config=config)
    run = await host.say("go", images=[PIXEL])
    told = [
        (request.model, request.level, no_pictures(request), "$ref" in str(request.funcs), len(request.funcs))
        for request in run.requests
    ]
    assert [(model, level, blind, len_) for model, level, blind, _, len_ in told] == [
        ("m1", "high", False, 2),
        ("m1", None, False, 2),
        ("m1", None, True, 2),
        ("m1", None, True, 2),
        ("m1", None, True, 0),
        ("m2", "low", False, 2),
    ]
    sent = [(str(request.messages), str(request.funcs), request.level) for request in run.requests]
    assert len(set(sent)) == len(sent)
    assert run.requests[3].funcs != run.requests[2].funcs, "the schema that had to be changed is as plain as can be"
    assert run.final_text == "Here.", "the second model saw the picture, so nothing is said about it"
    await assert_sound(host, run)


async def test_K7_what_helped_stays_for_the_run_and_begins_the_next_one_until_a_day_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1_800_000_000.0]
    monkeypatch.setattr(a_run, "Bench", partial(Bench, now=lambda: now[0]))
    model = Model("m1", default=takes(no_tools))
    host = host_with(models=[model], tools=[words()])
    counts = []
    for later in (0.0, 0.0, REMEMBERED - 1, 2.0, 0.0):
        now[0] += later
        run = await host.say("go")
        assert run.final_text == "Here."
        counts.append(len(run.requests))
    assert counts == [2, 1, 1, 2, 1]
    assert [log for log in run.logs if "m1 is asked without tools" in log], "nothing goes missing in silence"
    await assert_sound(host, run)


async def test_K7_what_one_model_did_not_take_is_not_kept_from_another() -> None:
    models = [Model("m1", replies=[REFUSED, "No tools here.", LIMITED]), Model("m2", default=takes(lambda _: True))]
    host = host_with(models=models, tools=[words()])
    await host.say("one")
    run = await host.say("two")
    assert [(request.model, request.tool_names) for request in run.requests] == [("m1", []), ("m2", ["look"])]


async def test_K7_pictures_that_a_model_refused_are_named_and_those_of_tools_are_words_for_it() -> None:
    picture = Tool("look", result=[{"type": "image_base64", "image_base64": PIXEL}, {"type": "text", "text": "a map"}])
    replies: Iterator[Reply | str] = iter([LOOK, "A map."])

    def reply(request: ModelRequest) -> Reply | str:
        return next(replies) if no_pictures(request) else REFUSED

    host = host_with(models=[Model("m1", default=reply)], tools=[picture])
    run = await host.say("what is this?", images=[PIXEL])
    assert run.final_text == f"A map.\n\n{say(Notice.IMAGES_LEFT_OUT_NOTE, Locale.EN_US)}"
    assert [no_pictures(request) for request in run.requests] == [False, True, True]
    await assert_sound(host, run)


@pytest.mark.parametrize("abilities", [frozenset({"vision"}), frozenset({"vision", "func_call"})])
async def test_K7_calls_reach_a_model_without_tools_as_words_in_the_same_run(abilities: frozenset[str]) -> None:
    second = Model("m2", default=takes(no_tool_turns, "From the result."), abilities=abilities)
    host = host_with(models=[Model("m1", replies=[LOOK, LIMITED]), second], tools=[words("data")])
    run = await host.say("go")
    assert run.final_text == "From the result."
    assert asked(run) == ["m1", "m1", "m2", "m2"]
    assert "data" in run.requests[-1].text
    assert run.requests[-1].violations(private=PRIVATE) == [], "what the Host drops unasked cannot be helped before"


async def test_K7_calls_of_the_history_reach_a_model_without_tools_as_words() -> None:
    second = Model("m2", default=takes(no_tool_turns, "From the result."), abilities=frozenset({"vision"}))
    host = host_with(models=[Model("m1", replies=[LOOK, "fine", LIMITED, LIMITED]), second], tools=[words("data")])
    await host.say("one")
    asked_for = []
    for text in ("two", "three"):
        run = await host.say(text)
        assert run.final_text == "From the result."
        asked_for.append(asked(run))
    assert asked_for == [["m1", "m2", "m2"], ["m1", "m2"]]
    await assert_sound(host, run)


async def test_K7_a_model_that_only_minds_replayed_calls_has_its_tools_again_in_the_next_run() -> None:
    def reply(request: ModelRequest) -> Reply:
        return REFUSED if "tool" in request.roles else Reply(f"{len(request.funcs)} tools")

    host = host_with(models=[Model("m1", replies=[LOOK, "fine"], default=reply)], tools=[words("data")])
    await host.say("one")
    answers = [(await host.say(text)).final_text for text in ("two", "three", "four")]
    assert answers == ["0 tools", "1 tools", "1 tools"]


async def test_K7_calls_of_the_history_are_words_where_no_tool_is_left_to_offer() -> None:
    host = host_with(replies=[LOOK, "fine"], tools=[words("data")])
    await host.say("one")
    host.world.tools.clear()
    host.world.models[0].default = takes(no_tool_turns, "From the result.")
    run = await host.say("two")
    assert run.final_text == "From the result."
    await assert_sound(host, run)


async def test_K7_a_second_change_in_a_later_turn_keeps_the_first() -> None:
    picture = Tool("look", result=[{"type": "image_base64", "image_base64": PIXEL}])
    replies: Iterator[Reply | str] = iter([LOOK, "Done."])

    def reply(request: ModelRequest) -> Reply | str:
        return next(replies) if request.level is None and no_pictures(request) else REFUSED

    config = {"model": {"primary": "m1", "reasoning": {"m1": "high"}}}
    host = host_with(models=[Model("m1", default=reply)], tools=[picture], config=config)
    run = await host.say("go")
    assert [(request.level, no_pictures(request)) for request in run.requests] == [
        ("high", True),
        (None, True),
        (None, False),
        (None, True),
    ]
    assert run.final_text is not None
    assert run.final_text.startswith("Done.")
    await assert_sound(host, run)


async def test_K7_a_forced_conclusion_that_is_refused_is_asked_for_without_tools_at_once_the_next_time() -> None:
    def reply(request: ModelRequest) -> Reply:
        if "tool_choice" in request.extra_args:
            return REFUSED
        return Reply("What I know.") if not request.funcs else Reply(tool_calls=[ToolCall("look")])

    host = host_with(models=[Model("m1", default=reply)], tools=[words()], config={"max-tool-iterations": 1})
    first, second = await host.say("one"), await host.say("two")
    assert [first.final_text, second.final_text] == ["What I know."] * 2
    assert [len(first.requests), len(second.requests)] == [4, 3]
    await assert_sound(host, second)


async def test_K7_a_reply_that_had_begun_was_no_refusal() -> None:
    broken = Reply("x", reasoning="hm hm hm", error=Reason.BAD_REQUEST, error_after=1)
    models = [Model("m1", replies=[broken]), Model("m2", replies=["Here."])]
    run = await host_with(models=models, tools=[words()], config={"remove-think": True}).say("go")
    assert [(request.model, request.tool_names) for request in run.requests] == [("m1", ["look"]), ("m2", ["look"])]
