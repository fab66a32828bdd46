"""What others hand to this door, read into its own shapes: objects with the documented attributes or plain mappings.

Here and in `Completed` of `local.provider` alone anything is asked for what it may not have; behind them types hold.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from callformats import Offered, spec_of
from local.request import Agent, FinishedCall, Message
from runner.conversation.request import ToolSpec
from runner.host.events import Json

_POLL: Final = 0.05  # seconds between looks at a signal that cannot be awaited
_MISSING: Final = object()


class Signal(Protocol):
    """Whether a run is to stop: an `asyncio.Event`, a `threading.Event`, or what has this method of theirs."""

    def is_set(self) -> bool: ...


def member(value: object, *names: str, otherwise: object = None) -> object:
    """The first of these attributes or keys that is there."""
    for name in names:
        found = value.get(name, _MISSING) if isinstance(value, Mapping) else getattr(value, name, _MISSING)
        if found is not _MISSING:
            return found
    return otherwise


async def resolved(value: object) -> object:
    """The value itself or, where it can be awaited, what comes of it."""
    return await value if inspect.isawaitable(value) else value


class TakenRequest:
    """A run as it was handed over. `tools` is read each time. Raises ValueError for messages that make no sense."""

    def __init__(self, request: object) -> None:
        self._request = request
        self.messages = read_messages(member(request, "messages", otherwise=()))
        self.stop = _signal(member(request, "stop", "signal"))
        self.agent = _agent(member(request, "agent"))

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools as they are now. Raises TypeError for what is no tool."""
        offered: Iterable[Offered] = member(self._request, "tools") or ()  # type: ignore[assignment]  # spec_of looks
        return tuple(map(spec_of, offered))

    async def call_tool(self, name: str, arguments: Mapping[str, Json]) -> object:
        """What the tool returns. Raises whatever it raises."""
        call = member(self._request, "call_tool")
        if not callable(call):
            raise TypeError("the request has no call_tool: nobody runs tools here")
        return await resolved(call(name, arguments))


async def stopped(stop: Signal) -> None:
    """Waits until the signal is set."""
    if isinstance(stop, asyncio.Event):
        await stop.wait()
        return
    while not stop.is_set():  # noqa: ASYNC110  only an event of asyncio can be awaited
        await asyncio.sleep(_POLL)


def _signal(stop: object) -> Signal:
    if stop is None:
        return asyncio.Event()
    if not callable(getattr(stop, "is_set", None)):
        raise ValueError(f"the stop signal has to be an event, not {type(stop).__name__}")
    return stop  # type: ignore[return-value]  # just looked at


def _agent(agent: object) -> Agent:
    steps, instructions = member(agent, "max_steps"), member(agent, "instructions")
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool)):
        raise ValueError(f"max_steps of the agent has to be a number of steps, not {steps!r}")
    return Agent(steps, instructions if isinstance(instructions, str) else None)


# --- messages ---------------------------------------------------------------------------------------------------------


def read_messages(messages: object) -> tuple[Message, ...]:
    """Messages as `Message`, or as turns: a `tool` turn is the result of a call of the assistant's message before it.

    Raises ValueError for another role.
    """
    read: list[_Open] = []
    for one in messages if isinstance(messages, Sequence) else ():
        role, text = member(one, "role"), _text(member(one, "text", "content"))
        if role == "tool":
            _last_of_assistant(read).finish(member(one, "tool_call_id", "id"), member(one, "name"), text)
        elif role == "assistant":
            read.append(
                _Open("assistant", text, [_Call.of(call) for call in _listed(member(one, "calls", "tool_calls"))])
            )
        elif role == "user":
            read.append(_Open("user", text))
        else:
            raise ValueError(f"a message is of user, assistant or tool, not {role!r}")
    return tuple(one.message() for one in read)


@dataclass(slots=True)
class _Call:
    """A call of an earlier message, before or after its result was seen."""

    name: str
    arguments: Mapping[str, Json]
    id: object = None
    result: Json = None
    error: str | None = None
    finished: bool = False

    @classmethod
    def of(cls, call: object) -> _Call:
        own_id = member(call, "id")
        inner = member(call, "function", otherwise=call)
        result, error = member(call, "result"), member(call, "error")
        return cls(
            str(member(inner, "name", otherwise="")),
            _arguments(member(inner, "arguments", otherwise={})),
            own_id,
            result,  # type: ignore[arg-type]  # the renderer takes any value
            None if error is None else str(error),
            finished=own_id is None,
        )


@dataclass(slots=True)
class _Open:
    """A message whose calls may still get their results."""

    role: str
    text: str
    calls: list[_Call] = field(default_factory=list)

    def finish(self, call_id: object, name: object, result: str) -> None:
        waiting = [call for call in self.calls if not call.finished]
        same = [call for call in waiting if call_id is not None and call.id == call_id]
        same = same or [call for call in waiting if call.name == name]
        if not same:
            same = [_Call(str(name or "tool"), {})]
            self.calls.extend(same)
        same[0].result, same[0].finished = result, True

    def message(self) -> Message:
        done = [
            FinishedCall(call.name, call.arguments, call.result, call.error) for call in self.calls if call.finished
        ]
        return Message("assistant" if self.role == "assistant" else "user", self.text, done)


def _last_of_assistant(read: list[_Open]) -> _Open:
    if not read or read[-1].role != "assistant":
        read.append(_Open("assistant", ""))
    return read[-1]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    pieces = (member(part, "text") for part in _listed(content))
    return "\n".join(piece for piece in pieces if isinstance(piece, str))


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def _arguments(written: object) -> Mapping[str, Json]:
    if isinstance(written, str):
        try:
            written = json.loads(written)
        except (ValueError, RecursionError):
            return {}
    return written if isinstance(written, Mapping) else {}
