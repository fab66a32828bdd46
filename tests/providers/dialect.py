"""One provider as the tests play it: how it writes a reply, how it reads a request, and what it refuses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.providers.said import Heard, Json, Said


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that a provider refuses. `broken` gives the provider's words for what is wrong with a request, or None.

    `source`: where it is known from, a documented page or an issue that shows the error (`owner/repository#number`).
    """

    name: str
    source: str
    broken: Callable[[Heard], str | None]
    status: int = 400


@dataclass(frozen=True, slots=True)
class Refusal:
    rule: str
    status: int
    words: str


class Dialect(ABC):
    """A provider's form and rules. An object is one provider for one chat: it may number what it says."""

    name: ClassVar[str]
    base: ClassVar[str] = "/v1"
    """What LangBot's form holds behind the host of the address."""
    content_type: ClassVar[str] = "text/event-stream"
    done: ClassVar[str] = "data: [DONE]\n\n"
    """The last line of a stream, empty where a provider has none."""
    rules: ClassVar[tuple[Rule, ...]]

    def refusal(self, heard: Heard) -> Refusal | None:
        """The first rule that a request breaks."""
        for rule in self.rules:
            words = rule.broken(heard)
            if words is not None:
                return Refusal(rule.name, rule.status, words)
        return None

    @abstractmethod
    def heard(self, path: str, body: Json) -> Heard:
        """A request, read."""

    @abstractmethod
    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        """A reply as the events of its stream."""

    @abstractmethod
    def whole(self, said: Said, heard: Heard) -> Json:
        """A reply that is not streamed."""

    @abstractmethod
    def error(self, status: int, words: str) -> Json:
        """The body of an HTTP error."""

    def line(self, event: Json) -> str:
        """One event on the wire."""
        return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"


def pieces(text: str, size: int = 7) -> list[str]:
    """A text as it arrives: in fragments of `size` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]
