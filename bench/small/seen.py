"""What a model can know: a request as the endpoint receives it, and nothing beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.small.rates import Asked
from bench.small.tasks import TASKS, Do, Task
from runner.small.reply_tool import REPLY
from tests.host import ModelRequest
from tests.host.script import text_of

_RESULT: Final = re.compile(r"^Result of (\w+):\n(.*?)(?=\n?^Result of \w+:\n|\n?^\[My request was|\Z)", re.M | re.S)
_FRAME: Final = re.compile(r"^--- (?:end of )?data block .*---\n?", re.M)
_CORRECTS: Final = re.compile(r"Error: |Your reply (?:was not sent|repeated)|That call brought the same")


@dataclass(frozen=True, slots=True)
class Result:
    """A result that stands in the request."""

    tool: str
    text: str

    @property
    def failed(self) -> bool:
        return self.text.startswith("Error")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request. `tools`: name → schema; `task`: the newest one whose words stand in it; `results` came after those
    words; `plain_turns`: earlier answers stand in it in plain words; `corrected`: the last words say what was wrong."""

    asked: Asked
    tools: Mapping[str, Mapping[str, Any]]
    task: Task | None
    results: tuple[Result, ...]
    plain_turns: bool
    corrected: bool

    @property
    def done(self) -> list[str]:
        """The results of the task's steps, in their order; a failed call is no step done."""
        assert self.task is not None
        found: list[str] = []
        for result in self.results:
            due = self.task.steps[len(found)].tool if len(found) < len(self.task.steps) else None
            if result.tool == due and not result.failed:
                found.append(result.text)
        return found

    @property
    def next(self) -> Do | None:
        """The step that is due; None when an answer is."""
        assert self.task is not None
        done = len(self.done)
        return self.task.steps[done] if done < len(self.task.steps) else None


def look(request: ModelRequest) -> Seen:
    """Read a request."""
    tools, form = _tools(request)
    place, task = _task(request)
    last = request.messages[-1]
    return Seen(
        asked=Asked(
            form,
            reply_tool=REPLY in tools,
            schema="response_format" in request.extra_args,
            native_turns=any(message.get("tool_calls") for message in request.messages),
        ),
        tools=tools,
        task=task,
        results=tuple(_results(request.messages[place:])),
        plain_turns=any(_is_plain(message) for message in request.messages),
        corrected=bool(_CORRECTS.search(text_of(last)) or _failed_last(request)),
    )


def _tools(request: ModelRequest) -> tuple[dict[str, Mapping[str, Any]], str]:
    if request.funcs:
        return {func["name"]: func["parameters"] for func in request.funcs}, "native"
    told = [line for line in request.system.splitlines() if line.startswith('{"name":') and '"parameters"' in line]
    tools = {tool["name"]: tool["parameters"] for tool in map(json.loads, told)}
    if "<tool_call>" in request.system:
        return tools, "hermes"
    return tools, "pythonic" if "[tool_name(" in request.system else "json"


def _task(request: ModelRequest) -> tuple[int, Task | None]:
    """The newest task whose words stand in a user message, and the place of that message."""
    for place in reversed(range(len(request.messages))):
        message = request.messages[place]
        if message["role"] == "user" and (text := text_of(message)):
            for task in TASKS:
                if task.says in text:
                    return place, task
    return len(request.messages), _restated(request)


def _restated(request: ModelRequest) -> Task | None:
    squeezed = " ".join(request.last_user.split())
    return next((task for task in TASKS if " ".join(task.says.split()) in squeezed), None)


def _results(messages: Sequence[Mapping[str, Any]]) -> list[Result]:
    names = {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    found: list[Result] = []
    for message in messages:
        text = text_of(message)
        if message["role"] == "tool":
            found.append(Result(names.get(message.get("tool_call_id"), ""), _FRAME.sub("", text).strip()))
        elif message["role"] == "user":
            found += [Result(name, _FRAME.sub("", body).strip()) for name, body in _RESULT.findall(text)]
    return found


def _failed_last(request: ModelRequest) -> bool:
    results = _results(request.messages)
    return bool(results) and results[-1].failed and request.messages[-1]["role"] in ("tool", "user")


def _is_plain(message: Mapping[str, Any]) -> bool:
    text = text_of(message).lstrip()
    return (
        message["role"] == "assistant" and not message.get("tool_calls") and not text.startswith(("{", "<", "[", "```"))
    )
