"""Chats written down as data, for the test host and for the real LangBot alike.

A scenario names what is said, what the model answers and what must come of it, in terms both can be asked about: the
answers in the chat, the requests at the model's endpoint, the history. `play` runs it here; another driver makes the
same `Outcome`s with the real LangBot and hands them to `differences`.

A reply is an object with the keys of the scripted endpoint: `text, reasoning, tool_calls [{name, arguments, id}],
usage, no_usage, finish_reason, first_delay, chunk_delay, chunk_size, arg_chunk_size, context_error, status`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest

from .host import TestHost
from .script import Json, Model, Reply, ToolCall, text_of
from .texts import Reason
from .tools import Tool


@dataclass(frozen=True)
class Expected:
    """What must come of one turn; None: not looked at.

    `answer`: the last text in the chat; `contains`: parts of it; `requests`: how many reached the model; `roles`: of
    the last one; `in_last_request`: texts anywhere in it.
    """

    answer: str | None = None
    contains: Sequence[str] = ()
    requests: int | None = None
    roles: Sequence[str] | None = None
    in_last_request: Sequence[str] = ()


@dataclass(frozen=True)
class Turn:
    """One message. `steer`: texts sent while its run goes on, at its first tool call."""

    say: str
    sender: str = "u1"
    steer: Sequence[str] = ()
    expect: Expected = Expected()


@dataclass(frozen=True)
class Scenario:
    """A chat. `tools`: `{name, description, parameters, result}`; `history`: the rows expected in the end."""

    name: str
    turns: Sequence[Turn]
    replies: Sequence[Json] = ()
    tools: Sequence[Json] = ()
    config: Json = field(default_factory=dict)
    history: Sequence[Sequence[str]] | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Scenario:
        """From JSON. Raises TypeError for a key that is none of ours."""
        turns = [Turn(**{**turn, "expect": Expected(**turn.get("expect", {}))}) for turn in data["turns"]]
        return cls(**{**data, "turns": turns})


def load(path: Path) -> list[Scenario]:
    """The scenarios of a JSON file holding a list of them."""
    return [Scenario.of(one) for one in json.loads(path.read_text("utf-8"))]


@dataclass(frozen=True)
class Outcome:
    """What came of one turn. `requests`: the `messages` of each request at the endpoint."""

    answer: str | None
    requests: Sequence[Sequence[Json]]


def differences(scenario: Scenario, outcomes: Sequence[Outcome], history: Sequence[Sequence[str]]) -> list[str]:
    """Where the outcomes are not as expected: nothing when all is well."""
    found: list[str] = []
    for number, (turn, outcome) in enumerate(zip(scenario.turns, outcomes, strict=True), 1):
        found += [f"turn {number}: {text}" for text in _turn_differences(turn.expect, outcome)]
    if scenario.history is not None and [list(row) for row in history] != [list(row) for row in scenario.history]:
        found.append(f"history: {list(history)}")
    return found


def _turn_differences(expected: Expected, outcome: Outcome) -> list[str]:
    answer = outcome.answer or ""
    last: Sequence[Json] = outcome.requests[-1] if outcome.requests else ()
    roles = [str(message["role"]) for message in last]
    text = "\n".join(text_of(message) for message in last)
    found = []
    if expected.answer is not None and answer != expected.answer:
        found.append(f"answer {answer!r}")
    found += [f"{part!r} is missing in the answer {answer!r}" for part in expected.contains if part not in answer]
    if expected.requests is not None and len(outcome.requests) != expected.requests:
        found.append(f"{len(outcome.requests)} requests")
    if expected.roles is not None and roles != list(expected.roles):
        found.append(f"roles {roles}")
    found += [f"{part!r} is missing in the last request" for part in expected.in_last_request if part not in text]
    return found


def reply_of(data: Json) -> Reply:
    """A reply in the words of the scripted endpoint."""
    text, reason = str(data.get("text", "")), None
    if data.get("context_error"):
        reason = Reason.CONTEXT_LENGTH
    elif data.get("status"):
        reason = Reason.RATE_LIMIT if data["status"] == 429 else Reason.BAD_REQUEST
    arguments_size = int(data.get("arg_chunk_size", 12))
    calls = [_call_of(call, arguments_size) for call in data.get("tool_calls", ())]
    return Reply(
        text=text,
        chunks=-(-len(text) // int(data.get("chunk_size", 8))) or 1,
        tool_calls=calls,
        reasoning=str(data.get("reasoning", "")),
        finish_reason=data.get("finish_reason"),
        usage={} if data.get("no_usage") else data.get("usage"),
        error=reason,
        delay=float(data.get("first_delay", 0)),
        chunk_delay=float(data.get("chunk_delay", 0)),
    )


def _call_of(data: Json, size: int) -> ToolCall:
    call = ToolCall(name=data["name"], arguments=data.get("arguments", {}), id=data.get("id"))
    return ToolCall(call.name, call.arguments, call.id, pieces=-(-len(call.text) // size) or 1)


async def play(scenario: Scenario, runner: Runner | None = None, manifest: RunnerManifest | None = None) -> list[str]:
    """Plays a scenario on the test host; gives the differences."""
    tools = [Tool(**tool) for tool in scenario.tools]
    model = Model("m1", [reply_of(reply) for reply in scenario.replies])
    host = TestHost(runner, manifest=manifest, models=[model], tools=tools, config=dict(scenario.config))
    outcomes = []
    async with host:
        for turn in scenario.turns:
            for text in turn.steer:
                host.when("call_tool", lambda text=text: host.steer(text))  # type: ignore[misc]
            run = await host.say(turn.say, sender=turn.sender)
            outcomes.append(Outcome(run.answer, [request.messages for request in run.requests]))
        history = [(row.role, row.text) for row in host.transcript()]
    return differences(scenario, outcomes, history)
