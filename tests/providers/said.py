"""What a model says and what it hears, in no provider's form; each dialect writes and reads it in its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Called:
    """One call. `arguments`: an object, or the very text that stands on the wire. `id` empty: the dialect makes one,
    as its provider does."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def written(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def read(self) -> Json:
        """The arguments as an object, `{}` where they are none."""
        if not isinstance(self.arguments, str):
            return dict(self.arguments)
        try:
            value = json.loads(self.arguments)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Said:
    """One reply. `finish` empty: the provider's own word for how such a reply ends."""

    text: str = ""
    calls: tuple[Called, ...] = ()
    thoughts: str = ""
    finish: str = ""


@dataclass(frozen=True, slots=True)
class Fails:
    """The provider answers with an HTTP error in its own form."""

    status: int = 503
    words: str = "overloaded"


@dataclass(frozen=True, slots=True)
class Wire:
    """A stream as it stands on the wire, event by event, for what no healthy provider says."""

    events: Sequence[Json]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a request. `answers`: the id of the call that a tool's message is for, empty where there is none
    (Gemini and Ollama go by order)."""

    role: str
    text: str = ""
    calls: tuple[Called, ...] = ()
    answers: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """One request. `body` as it came; the rest is read from it by the dialect."""

    model: str
    body: Json
    turns: tuple[Turn, ...]
    tools: tuple[str, ...]
    streamed: bool

    @property
    def calls(self) -> list[Called]:
        return [call for turn in self.turns for call in turn.calls]

    @property
    def call_ids(self) -> list[str]:
        return [call.id for call in self.calls]

    @property
    def answered_ids(self) -> list[str]:
        return [turn.answers for turn in self.turns if turn.role == "tool"]

    @property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.turns)


Answer = Said | Fails | Wire
Scripted = Answer | Callable[[Heard], Answer]


def calls(name: str, arguments: Mapping[str, Any] | str | None = None, id: str = "", thoughts: str = "") -> Said:
    """A reply of one call alone."""
    return Said(calls=(Called(name, {} if arguments is None else arguments, id),), thoughts=thoughts)
