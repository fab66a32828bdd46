"""The process border of a run: a context as the Host fills it, and the Host's side of the wire behind the SDK's proxy.

Everything on our side of `Handler` is real: the SDK's proxy, its permission checks, its models.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from langbot_plugin.api.definition.components.base import NoneComponent
from langbot_plugin.api.definition.components.manifest import ComponentManifest
from langbot_plugin.api.definition.plugin import NonePlugin
from langbot_plugin.api.entities.builtin.provider.message import ContentElement, FunctionCall, MessageChunk, ToolCall
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.transcript import TranscriptItem
from langbot_plugin.api.proxies.runner import RunnerAPIProxy
from langbot_plugin.entities.io.actions.enums import ActionType
from langbot_plugin.entities.io.errors import ActionCallError, ConnectionClosedError
from langbot_plugin.runtime.plugin.container import ComponentContainer, PluginContainer, RuntimeContainerStatus
from langbot_plugin.runtime.plugin.runner_service import RunnerRuntimeService

from config.locales import Locale
from config.notices import Notice, say
from config.settings import Settings
from runner.host.events import Answer, Completed, Event, Failed, Snapshot
from runner.host.port import ProxyHost
from runner.run.run import Worker, run

ALL_APIS = {"prompt_get": True, "history_page": True, "steering_pull": True, "run_get": True, "state": True}
RUN_ID = "run-1"
EVENT_ID = "host:now"
GONE = ConnectionClosedError("Connection closed")
NO_KEY = ActionCallError("ActionCallError: RequesterError: Model request failed: Invalid API key")
REFUSED = ActionCallError("ActionCallError: RequesterError: Model request failed: Invalid request parameters")
TWO_MODELS = [{"model_id": "a"}, {"model_id": "b"}]
WITH_FALLBACK = {"model": {"primary": "a", "fallbacks": ["b"], "reasoning": {}}}
STOP = {"run_id": RUN_ID, "status": "running", "cancel_requested_at": 1}

ASKED = "invoke_llm_stream"
"""The action that asks a model."""

Script = Sequence[object]
"""What one streamed reply does: dicts are frames, exceptions are raised, floats are waited (seconds), None hangs."""


def context(
    text: str | None = "hello",
    *,
    config: Mapping[str, object] | None = None,
    models: Sequence[Mapping[str, object]] = ({"model_id": "a"},),
    apis: Mapping[str, bool] = ALL_APIS,
    group: bool = False,
    contents: Sequence[ContentElement] = (),
    attachments: Sequence[Mapping[str, object]] = (),
    variables: Mapping[str, object] | None = None,
    deadline_at: float | None = None,
    tools: Sequence[str] = (),
    state: Mapping[str, object] | None = None,
) -> RunnerContext:
    """A pipeline's context. `config` is laid over a binding with model `a` and a static prompt."""
    launcher = "group" if group else "person"
    return RunnerContext.model_validate(
        {
            "run_id": RUN_ID,
            "trigger": {"type": "message.received"},
            "event": {"event_id": EVENT_ID, "event_type": "message.received", "source": "host_adapter"},
            "actor": {"actor_type": "user", "actor_id": "u1", "actor_name": "Ann"},
            "subject": {"subject_type": "message", "subject_id": "m1", "data": {"launcher_type": launcher}},
            "input": {
                "text": text,
                "contents": [element.model_dump() for element in contents],
                "attachments": list(attachments),
            },
            "delivery": {"surface": "platform", "automatic_reply": True},
            "resources": {"models": list(models), "tools": [_tool(name) for name in tools]},
            "state": {"conversation": dict(state or {})},
            "context": {"available_apis": dict(apis)},
            "runtime": {"deadline_at": deadline_at},
            "variables": {"launcher_type": launcher, **(variables or {})},
            "config": {
                "model": {"primary": "a", "fallbacks": [], "reasoning": {}},
                "prompt": [{"role": "system", "content": "Be kind."}],
                "date-grounding": False,
                "notice-language": "en_US",
                **(config or {}),
            },
        }
    )


def _tool(name: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    return {"tool_name": name, "tool_type": "plugin", "description": f"does {name}", "parameters": schema}


def call_frame(name: str, arguments: str = "{}", call_id: str = "call_0") -> dict[str, object]:
    """One streamed frame with a whole tool call."""
    call = ToolCall(id=call_id, type="function", function=FunctionCall(name=name, arguments=arguments))
    return {"chunk": MessageChunk(role="assistant", tool_calls=[call]).model_dump()}


def text_frame(text: str, **fields: object) -> dict[str, object]:
    """One streamed frame with a fragment of text."""
    return {"chunk": MessageChunk(role="assistant", content=text).model_dump() | fields}


def finish_frame(reason: str) -> dict[str, object]:
    """The frame in which the provider says why it stopped."""
    chunk = MessageChunk(role="assistant", is_final=True, provider_specific_fields={"finish_reason": reason})
    return {"chunk": chunk.model_dump()}


def usage_frame(prompt: int, completion: int, **extras: object) -> dict[str, object]:
    """The last frame: counters only."""
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, **extras}}


def row(role: str, text: str, number: int = 1, **fields: object) -> TranscriptItem:
    """One transcript row as the Host stores it."""
    return TranscriptItem.model_validate(
        {
            "transcript_id": f"t{number}",
            "event_id": f"e{number}",
            "role": role,
            "content": text[:4000],
            "content_json": {"role": role, "content": text},
            "cursor": str(number),
            "metadata": {"actor_id": "u1"} if role == "user" else {"run_id": "old"},
            **fields,
        }
    )


def follow_up(text: str, actor_id: str = "u2", name: str | None = "Bob") -> dict[str, object]:
    """One steering item as the Host hands it over."""
    return {
        "claimed_run_id": RUN_ID,
        "runner_id": "r",
        "event": {"event_id": "later", "event_type": "message.received", "source": "platform"},
        "actor": {"actor_type": "user", "actor_id": actor_id, "actor_name": name},
        "input": {"text": text, "contents": [{"type": "text", "text": text}]},
    }


@dataclass
class Handler:
    """The Host behind the wire. Unscripted calls answer as a quiet Host does.

    `replies` are played one per streamed call, the last one again and again. `answers` maps an action to a value, an
    exception, a function of the request, or None for a call that never returns.
    """

    replies: Sequence[Script] = ((text_frame("fine"),),)
    answers: dict[str, object] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    streams_open: int = 0

    def requests(self, action: str) -> list[dict[str, Any]]:
        """What was asked under this action's name, in order."""
        return [data for name, data in self.calls if name == action]

    async def call_action(self, action: ActionType, data: dict[str, Any], timeout: float = 15.0) -> object:
        self.calls.append((action.value, data))
        answer = self.answers.get(action.value, _QUIET.get(action.value, {}))
        if callable(answer):
            answer = answer(data)
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return answer

    async def call_action_generator(
        self, action: ActionType, data: dict[str, Any], timeout: float = 15.0
    ) -> AsyncGenerator[object, None]:
        number = len(self.requests(action.value))
        self.calls.append((action.value, data))
        self.streams_open += 1
        try:
            for step in self.replies[min(number, len(self.replies) - 1)]:
                if isinstance(step, BaseException):
                    raise step
                if step is None:
                    await asyncio.Event().wait()
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    yield step
        finally:
            self.streams_open -= 1


_QUIET: dict[str, object] = {
    "get_prompt": {"prompt": []},
    "history_page": {"items": [], "has_more": False},
    "steering_pull": {"items": []},
    "run_get": {"run_id": RUN_ID, "status": "running"},
    "run_events_page": {"items": []},
    "count_tokens": {"tokens": 10},
    "get_langbot_version": {"version": "4.11.2", "api_features": ["llm.reasoning_level"]},
    "state_get": {"value": None},
    "state_set": {"success": True},
    "call_tool": {"result": "tool says hi"},
}


def host_over(handler: Handler, ctx: RunnerContext) -> ProxyHost:
    """The real port over the real proxy over the scripted wire."""
    return ProxyHost(RunnerAPIProxy(ctx, handler), ctx)  # type: ignore[arg-type]  # the border of the process


async def events_of(handler: Handler, ctx: RunnerContext, *, limit: float = 20.0) -> list[Event]:
    """Everything one run says. Fails when it has not ended after `limit` seconds."""
    settings, notes = Settings.read(ctx.config)
    async with asyncio.timeout(limit):
        return [event async for event in run(ctx, host_over(handler, ctx), settings, notes, Worker())]


def sent(handler: Handler, call: int = 0) -> str:
    """The messages of a streamed model call, as JSON text."""
    return json.dumps(handler.requests("invoke_llm_stream")[call]["messages"], ensure_ascii=False)


def said(events: Sequence[Event]) -> str:
    """The text of the one completed message. Fails when there is none, or more than one."""
    (answer,) = [event for event in events if isinstance(event, Answer)]
    return answer.text


def snapshots(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Snapshot)]


def check_protocol(events: Sequence[Event]) -> None:
    """What holds for every run whatever happened: C6's order of events."""
    terminal = [place for place, event in enumerate(events) if isinstance(event, Completed | Failed)]
    assert terminal == [len(events) - 1], "exactly one terminal event, and it is the last"
    answers = [place for place, event in enumerate(events) if isinstance(event, Answer)]
    assert len(answers) <= 1, "at most one completed message"
    sequences = [event.sequence for event in events if isinstance(event, Snapshot)]
    assert sequences == list(range(1, len(sequences) + 1))
    if answers:
        assert answers[0] == len(events) - 2, "the terminal event comes at once after the completed message"
        text = said(events)
        assert text.strip(), "never an empty answer"
        shown = snapshots(events)
        if shown and not isinstance(events[-1], Failed):  # a stopped run is closed at its first result (G2)
            assert shown[-1] == text, "the last snapshot is the answer"


async def until(reached: Callable[[], bool]) -> None:
    """Let the run go on until the test's condition holds (at most five seconds)."""
    async with asyncio.timeout(5):
        while not reached():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


def english(notice: Notice, **values: object) -> str:
    return say(notice, Locale.EN_US, **values)


# The plugin as the SDK's runtime discovers it, from the manifests on disk.

ROOT = Path(__file__).parent.parent.parent
RUNNER = "components/runner/default.yaml"


def load(path: str) -> ComponentManifest:
    """The plugin's manifest or that of a component. `path` is relative to the repository."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return ComponentManifest(owner="langbot-team/LocalAgent", manifest=yaml.safe_load(text), rel_path=path)


async def listed_runners(runner: ComponentManifest) -> list[dict[str, Any]]:
    """What the plugin runtime tells LangBot: one entry, or none when it skips the runner as invalid."""
    nothing = NoneComponent()  # type: ignore[no-untyped-call]
    component = ComponentContainer(manifest=runner, component_instance=nothing, component_config={})
    plugin = PluginContainer(
        manifest=load("manifest.yaml"),
        plugin_instance=NonePlugin(),  # type: ignore[no-untyped-call]
        enabled=True,
        priority=0,
        plugin_config={},
        status=RuntimeContainerStatus.INITIALIZED,
        components=[component],
    )
    return await RunnerRuntimeService(
        plugins=lambda: [plugin], find_plugin=lambda _author, _name: plugin
    ).list_runners()


def runner_with(**capabilities: bool) -> ComponentManifest:
    """The runner's component with some capabilities declared differently from what is on disk."""
    runner = load(RUNNER)
    declared: Mapping[str, bool] = runner.spec["capabilities"]
    runner.spec["capabilities"] = {**declared, **capabilities}
    return runner
