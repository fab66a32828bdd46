"""What can go wrong with one call to the Host, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from langbot_plugin.entities.io.actions.enums import PluginToRuntimeAction

from .texts import Reason

Kind = Literal[
    "error",
    "model",
    "timeout",
    "hang",
    "drop",
    "lost",
    "disconnect",
    "malformed",
    "wrong_type",
    "huge",
    "doubled",
    "slow",
    "held",
    "cancel",
]

HUGE_CHARACTERS = 20_000_000
"""More than one message of the wire may hold."""

_BY_PROXY_NAME = {
    "retrieve_knowledge": "retrieve_knowledge_base",
    "invoke_llm_stream_events": "invoke_llm_stream",
    "invoke_llm_with_usage": "invoke_llm",
    "reply_files": "call_platform_api",
    "import_attachments": "import_box_attachments",
}
_ACTIONS = frozenset(action.value for action in PluginToRuntimeAction)


def action_name(name: str) -> str:
    """The wire name of an action, from itself or from the proxy method's name.

    Raises ValueError for a name the protocol does not have, so that a misspelt fault cannot pass unnoticed.
    """
    wire = _BY_PROXY_NAME.get(name, name)
    if wire not in _ACTIONS:
        raise ValueError(f"{name!r} is not an action of the Runner protocol")
    return wire


@dataclass(frozen=True)
class Fault:
    """One way a call can fail. `after` (stream calls only): items delivered before it strikes.

    `depth`: so deep in the answer the types are wrong. `gate` and `then`: what a held answer waits for, and becomes.
    """

    kind: Kind
    text: str = ""
    seconds: float | None = None
    reply: dict[str, Any] = field(default_factory=dict)
    after: int = 0
    depth: int = 0
    gate: asyncio.Event | None = None
    then: Fault | None = None

    @classmethod
    def error(cls, text: str = "The Host could not do this", *, after: int = 0) -> Fault:
        """The Host answers with an error: the plugin sees `ActionCallError: <text>`, code `host.action_error`."""
        return cls("error", text=text, after=after)

    @classmethod
    def model(cls, reason: Reason | str = Reason.CONNECTION, *, after: int = 0) -> Fault:
        """The provider fails: `ActionCallError: RequesterError: <translated>: <translated reason>`."""
        return cls("model", text=str(reason), after=after)

    @classmethod
    def timeout(cls, *, after: int = 0) -> Fault:
        """The runtime's hop to the Host timed out: the text says so, the code is still `host.action_error`."""
        return cls("timeout", after=after)

    @classmethod
    def hang(cls, seconds: float | None = None, *, after: int = 0) -> Fault:
        """Nothing ever answers. With `seconds` the proxy's own time limit is cut to that, so that the real
        `deadline_exceeded` comes soon; without, its own default holds (up to 180 s)."""
        return cls("hang", seconds=seconds, after=after)

    @classmethod
    def drop(cls, *, after: int = 0) -> Fault:
        """The link between runtime and Host broke: an error text that names a closed connection."""
        return cls("drop", after=after)

    @classmethod
    def lost(cls) -> Fault:
        """The plugin's own call is lost with its connection (`runtime_error`, retryable); results still flow."""
        return cls("lost")

    @classmethod
    def disconnect(cls, *, after: int = 0) -> Fault:
        """The plugin's connection really closes: every call fails and no result reaches the Host any more."""
        return cls("disconnect", after=after)

    @classmethod
    def malformed(cls, reply: dict[str, Any] | None = None, *, after: int = 0) -> Fault:
        """A successful answer with `reply` as its data: empty by default, so that every required key is missing."""
        return cls("malformed", reply=reply or {}, after=after)

    @classmethod
    def wrong_type(cls, depth: int = 0) -> Fault:
        """The right answer, but its values, or those so much deeper, are of other types."""
        return cls("wrong_type", depth=depth)

    @classmethod
    def huge(cls) -> Fault:
        """The right answer and 20 MB beside it."""
        return cls("huge")

    @classmethod
    def doubled(cls) -> Fault:
        """The right answer, and the same message once more; of a stream each of its messages."""
        return cls("doubled")

    @classmethod
    def held(cls, gate: asyncio.Event, then: Fault | None = None) -> Fault:
        """The answer comes once the gate is open: that of another fault, or the right one."""
        return cls("held", gate=gate, then=then)

    @classmethod
    def slow(cls, seconds: float = 0.05, *, after: int = 0) -> Fault:
        """The right answer, `seconds` later."""
        return cls("slow", seconds=seconds, after=after)

    @classmethod
    def cancel(cls, *, after: int = 0) -> Fault:
        """The run's `cancel_requested_at` is set as this call arrives; the answer is the right one."""
        return cls("cancel", after=after)


def bent(fault: Fault, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as a fault leaves it."""
    if fault.kind == "huge":
        return {**answer, "padding": "x" * HUGE_CHARACTERS}
    return _of_other_types(answer, fault.depth) if fault.kind == "wrong_type" else answer


def _of_other_types(value: Any, depth: int) -> Any:
    if depth >= 0 and isinstance(value, dict):
        return {key: _of_other_types(one, depth - 1) for key, one in value.items()}
    if depth >= 0 and isinstance(value, list):
        return [_of_other_types(one, depth - 1) for one in value]
    return _other(value)


def _other(value: Any) -> Any:
    if isinstance(value, str):
        return 7
    return {"x": 1} if value is None else ["x"] if isinstance(value, dict) else "x"


class Hooks:
    """What a test does at the moment the plugin makes a call."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, int, Callable[[], object]]] = []

    def add(self, action: str, nth: int, do: Callable[[], object]) -> None:
        self._waiting.append((action_name(action), nth, do))

    def clear(self) -> None:
        self._waiting.clear()

    def run(self, action: str) -> None:
        due = [do for name, nth, do in self._waiting if name == action and nth == 1]
        later = [(name, nth - (name == action), do) for name, nth, do in self._waiting]
        self._waiting = [entry for entry in later if entry[1] > 0]
        for do in due:
            do()


@dataclass
class _Planned:
    fault: Fault
    nth: int
    times: int | None


class FaultPlan:
    """Which occurrence of which action fails how. Occurrences are counted from 1 since the fault was planned."""

    def __init__(self) -> None:
        self._planned: dict[str, list[_Planned]] = {}

    def add(self, action: str, fault: Fault, nth: int = 1, times: int | None = 1) -> None:
        """`times` occurrences from the `nth` on fail; None: all of them from there."""
        if nth < 1:
            raise ValueError("nth counts from 1")
        self._planned.setdefault(action_name(action), []).append(_Planned(fault, nth, times))

    def take(self, action: str) -> Fault | None:
        """The fault for this occurrence of `action`; each call counts as one occurrence."""
        struck: Fault | None = None
        for plan in self._planned.get(action, []):
            plan.nth -= 1
            if plan.nth > 0 or (plan.times is not None and plan.nth <= -plan.times):
                continue
            struck = struck or plan.fault
        return struck

    @property
    def unused(self) -> list[str]:
        """Actions with a planned fault that has not struck yet: a test whose fault never came proves nothing."""
        return [name for name, plans in self._planned.items() if any(plan.nth > 0 for plan in plans)]

    def clear(self) -> None:
        self._planned.clear()
