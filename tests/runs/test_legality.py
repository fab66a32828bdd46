"""Whatever models, tools, people and the Host do at once, every request is legal for every provider (C2, D9).

One run is a script drawn by hypothesis: replies made of fragments whose ids repeat, are missing or change, tools that
answer, fail, terminate or return pictures, follow-ups, broken streams, cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.run import interrupt
from tests.host import Fault, Model, Reply, RunRecord, TestHost, Tool, mcp_content

from .scenes import PRIVATE, host_with, lost_steering

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


@pytest.fixture(autouse=True)
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Host itself stops a cancelled run at its next result; polls would only make the runs less alike."""
    monkeypatch.setattr(interrupt.PollBudget, "turn", lambda _self: 3_600.0)


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
