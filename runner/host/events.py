"""What a run says to the Host, as frozen values. The door turns each into one RunnerResult."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""Any JSON value."""

LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls, added up (C5). `extras` keeps the provider's other counters."""

    prompt: int = 0
    completion: int = 0
    total: int = 0
    extras: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Usage) -> Usage:
        extras = dict(self.extras)
        for name, amount in other.extras.items():
            extras[name] = extras.get(name, 0) + amount
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.total + other.total, extras)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All visible text so far (characters, cumulative). `sequence` counts from 1 (C6)."""

    text: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The one completed message of a run. `record` is the private tool record of B6, a JSON object."""

    text: str
    record: Mapping[str, Json] | None = None
    file_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call_id: str
    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """`result` is bounded and always an object (D7); `error` is set instead when the call failed."""

    call_id: str
    name: str
    result: Mapping[str, Json] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """A line for the bot's owner, at most 65,536 characters; never secrets.

    It holds message text in one case only: what a model says to an event that nobody waits for a reply to (J2).
    """

    text: str
    level: LogLevel = "info"


@dataclass(frozen=True, slots=True)
class Completed:
    """Terminal. `usage` None means unknown, not zero."""

    finish_reason: str = "stop"
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Terminal; read by the bot's owner, never by the person in the chat (C8)."""

    message: str
    code: str
    retryable: bool = False
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class StateUpdated:
    """A value for the conversation's state that the Host stores once it has come to this result (M2)."""

    key: str
    value: Json


@dataclass(frozen=True, slots=True)
class CardRequested:
    """A card with buttons, as the SDK's `InteractionRequest` (M2). The Host fails a run whose card it cannot show."""

    request: Mapping[str, Json]


Event = Snapshot | Answer | ToolStarted | ToolFinished | Log | StateUpdated | CardRequested | Completed | Failed
"""Everything a run can say. `Completed` and `Failed` end it."""
