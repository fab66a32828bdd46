"""What a run on this door says, part by part: frozen values with a `type`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from runner.host.events import Json


@dataclass(frozen=True, slots=True)
class MessageStart:
    """A step begins, and with it a new message of the assistant."""

    type: Literal["message-start"] = "message-start"


@dataclass(frozen=True, slots=True)
class Text:
    """The next characters of the message."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool is about to be called; `id` is unique in the run."""

    id: str
    name: str
    arguments: Mapping[str, Json]
    type: Literal["tool-call"] = "tool-call"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the tool of that call returned: any JSON value, bounded."""

    id: str
    name: str
    result: Json
    type: Literal["tool-result"] = "tool-result"


@dataclass(frozen=True, slots=True)
class ToolError:
    """The tool of that call failed; `error` is a code and words: `timeout: …`."""

    id: str
    name: str
    error: str
    type: Literal["tool-error"] = "tool-error"


FinishReason = Literal["stop", "aborted", "max-steps"]


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is over: by itself, by the stop signal, or since its steps were used up."""

    reason: FinishReason
    type: Literal["finish"] = "finish"


@dataclass(frozen=True, slots=True)
class Error:
    """The run could not go on; `text` is a sentence for a person."""

    text: str
    type: Literal["error"] = "error"


Part = MessageStart | Text | ToolCall | ToolResult | ToolError | Finish | Error
"""`Finish` and `Error` end a run."""
