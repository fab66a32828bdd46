"""Chats written down as data, for the test host and for the real LangBot alike.

A scenario names what is said, what the model answers and what must come of it, in terms both can be asked about: the
answers in the chat, the requests at the model's endpoint, the history. `witness` plays it here, another driver plays it
in the real LangBot; `differences` holds what came of it against what is expected, `seen.contrast` both against each
other.

A reply is an object with the keys of the scripted endpoint: `text, reasoning, tool_calls [{name, arguments, id}],
usage, no_usage, finish_reason, first_delay, chunk_delay, chunk_size, arg_chunk_size, context_error, status, model`
(whose reply it is; left out: that of the first model).
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
from .plugin import RUNNER_ID
from .run_record import PROCESSOR, RunRecord
from .script import Json, Model, ModelRequest, Reply, ToolCall, text_of
from .seen import Seen, SeenRow, SeenTurn
from .texts import Reason
from .tools import Tool
from .transcript import BOT, WORKSPACE, Row

START_OVER = "start over"
"""Said in a chat, this begins a new conversation: the tests' own plugin does it in LangBot."""


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
    """One message. `steer`: texts sent while its run goes on, at its first tool call. `asks`: what a probe is to ask
    its Host, said in place of `say`. `copies`: how often the rows of the chat so far are copied before it.
    """

    say: str = ""
    sender: str = "u1"
    steer: Sequence[str] = ()
    asks: Sequence[Any] = ()
    copies: int = 0
    expect: Expected = Expected()

    @property
    def text(self) -> str:
        return json.dumps(self.asks) if self.asks else self.say


@dataclass(frozen=True)
class Scenario:
    """A chat. `tools`: `{name, description, parameters, result}`; `history`: the rows expected in the end. `models`:
    the primary and its fallbacks. `probe`: it is played with the runner that only asks its Host.
    """

    name: str
    turns: Sequence[Turn]
    models: Sequence[str] = ("m1",)
    probe: bool = False
    replies: Sequence[Json] = ()
    tools: Sequence[Json] = ()
    config: Json = field(default_factory=dict)
    history: Sequence[Sequence[str]] | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Scenario:
        """From JSON. Raises TypeError for a key that is none of ours."""
        turns = [Turn(**{**turn, "expect": Expected(**turn.get("expect", {}))}) for turn in data["turns"]]
        return cls(**{**data, "turns": turns})


LONG = "\n".join(f"{number}. A paragraph, 一段文字 🦜." for number in range(300))
"""What `{long}` stands for in a scenario: beyond the 4,000 characters that a row's `content` holds."""


def load(path: Path) -> list[Scenario]:
    """The scenarios of a JSON file holding a list of them."""
    text = path.read_text("utf-8").replace('"{long}"', json.dumps(LONG))
    return [Scenario.of(one) for one in json.loads(text)]


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


_REASONS = {
    400: Reason.BAD_REQUEST,
    401: Reason.AUTHENTICATION,
    404: Reason.NOT_FOUND,
    429: Reason.RATE_LIMIT,
}
"""What LangBot makes of an endpoint's status; a server's own failure is one it does not know."""

_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def reply_of(data: Json) -> Reply:
    """A reply in the words of the scripted endpoint."""
    text, reason = str(data.get("text", "")), None
    if data.get("context_error"):
        reason = Reason.CONTEXT_LENGTH
    elif data.get("status"):
        reason = _REASONS.get(int(data["status"]), Reason.UNKNOWN)
    arguments_size = int(data.get("arg_chunk_size", 12))
    calls = [_call_of(call, arguments_size) for call in data.get("tool_calls", ())]
    return Reply(
        text=text,
        chunks=-(-len(text) // int(data.get("chunk_size", 8))) or 1,
        tool_calls=calls,
        reasoning=str(data.get("reasoning", "")),
        finish_reason=data.get("finish_reason"),
        usage={} if data.get("no_usage") else data.get("usage", _USAGE),
        error=reason,
        delay=float(data.get("first_delay", 0)),
        chunk_delay=float(data.get("chunk_delay", 0)),
    )


def _call_of(data: Json, size: int) -> ToolCall:
    call = ToolCall(name=data["name"], arguments=data.get("arguments", {}), id=data.get("id"))
    return ToolCall(call.name, call.arguments, call.id, pieces=-(-len(call.text) // size) or 1)


async def play(scenario: Scenario, runner: Runner | None = None, manifest: RunnerManifest | None = None) -> list[str]:
    """Plays a scenario on the test host; gives the differences."""
    outcomes, seen = await witness(scenario, runner, manifest)
    return differences(scenario, outcomes, [(row.role, row.text) for row in seen.rows])


async def witness(
    scenario: Scenario,
    runner: Runner | None = None,
    manifest: RunnerManifest | None = None,
    tools: Sequence[Tool] = (),
) -> tuple[list[Outcome], Seen]:
    """Plays a scenario on the test host, with `tools` beside its own: what came of each turn, and all that was seen."""
    own = [Tool(**tool) for tool in scenario.tools]
    host = TestHost(
        runner, manifest=manifest, models=_models(scenario), tools=[*own, *tools], config=dict(scenario.config)
    )
    runs = []
    async with host:
        for turn in scenario.turns:
            for text in turn.steer:
                host.when("call_tool", lambda text=text: host.steer(text, conversation=_CHAT))  # type: ignore[misc]
            if turn.text == START_OVER:
                host.reset(_CHAT)
            for row in host.transcript(_CHAT) * turn.copies:
                host.world.transcript.copy(row)
            runs.append(await host.say(turn.text, sender=turn.sender, sender_name="User", conversation=_CHAT))
        rows = [row for row in host.world.transcript.rows if row.conversation == _CHAT]
    names = {run.run_id: "<run>" for run in runs} | _NAMES
    outcomes = [Outcome(run.answer, [request.messages for request in run.requests]) for run in runs]
    return outcomes, Seen([_seen(run) for run in runs], [_seen_row(row) for row in rows], names)


_CHAT = "person_u1"
_NAMES = {
    _CHAT: "<chat>",
    "u1": "<sender>",
    BOT: "<bot>",
    WORKSPACE: "<workspace>",
    RUNNER_ID: "<runner>",
    PROCESSOR: "<processor>",
    "instance-1": "<instance>",
    "TestAdapter": "<adapter>",
}


def _models(scenario: Scenario) -> list[Model]:
    first = scenario.models[0]
    return [
        Model(
            name,
            [reply_of(reply) for reply in scenario.replies if reply.get("model", first) == name],
            abilities=frozenset({"func_call", "vision"}),
        )
        for name in scenario.models
    ]


def _seen(run: RunRecord) -> SeenTurn:
    return SeenTurn(
        cards=[(card.texts[0], card.text) if card.texts else ("", "") for card in run.cards],
        requests=[_seen_request(request) for request in run.requests],
        results=[(result["type"], result["data"]) for result in run.results],
        status=run.status,
        reason=run.status_reason,
        usage=run.usage,
    )


def _seen_request(request: ModelRequest) -> Json:
    tools = [
        {"type": "function", "function": {key: func[key] for key in ("name", "description", "parameters")}}
        for func in request.funcs
    ]
    return {"model": request.model, "messages": request.messages, "tools": tools, "stream": request.stream}


def _seen_row(row: Row) -> SeenRow:
    return SeenRow(row.seq, row.role, row.content, row.content_json, row.attachment_refs, row.metadata)
