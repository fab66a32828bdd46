"""One provider as the tests play it: how it writes a reply, how it reads a request, and what it refuses."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.providers.said import Called, Heard, Json, Said, Turn


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


# The form of OpenAI's chat completions, which most providers write with an accent of their own.


class ChatCompletions(Dialect):
    """What a provider says differently it overrides: ids, fragments of a call, thoughts, the word for the end."""

    thoughts_field: ClassVar[str] = "reasoning_content"
    habitual_thought: ClassVar[str] = ""
    """What a model that always thinks thinks where a test wrote down no thought."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    # Reading

    def heard(self, path: str, body: Json) -> Heard:
        return Heard(
            model=str(body.get("model")),
            body=body,
            turns=tuple(_turn(message) for message in body["messages"]),
            tools=tuple(one["function"]["name"] for one in body.get("tools") or ()),
            streamed=bool(body.get("stream")),
        )

    # Writing

    def events(self, said: Said, heard: Heard) -> Iterator[Json]:
        yield chunk({"role": "assistant", "content": ""})
        yield from self.thinking(said)
        for piece in pieces(said.text):
            yield chunk({"content": piece})
        for index, call in enumerate(said.calls):
            for fragment in self.fragments(index, self.named(call, heard, index)):
                yield chunk({"tool_calls": [fragment]})
        yield chunk({}, self.finish(said))
        yield {**chunk({}), "choices": [], "usage": USAGE}

    def whole(self, said: Said, heard: Heard) -> Json:
        message: Json = {"role": "assistant", "content": said.text or None}
        if thoughts := said.thoughts or self.habitual_thought:
            message[self.thoughts_field] = thoughts
        if said.calls:
            named = [self.named(call, heard, index) for index, call in enumerate(said.calls)]
            message["tool_calls"] = [fragment(None, call.id, call.name, call.written) for call in named]
        choice = {"index": 0, "message": message, "finish_reason": self.finish(said)}
        return {**chunk({}), "object": "chat.completion", "choices": [choice], "usage": USAGE}

    def error(self, status: int, words: str) -> Json:
        return {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": None}}

    # The accent

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        """The id that this provider gives to its `index`-th call of a reply."""
        return f"call_{next(self._numbers):024d}"

    def named(self, call: Called, heard: Heard, index: int) -> Called:
        return Called(call.name, call.arguments, call.id or self.new_id(call, heard, index))

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        """A call in the pieces in which it comes."""
        yield fragment(index, call.id, call.name, "")
        for piece in pieces(call.written):
            yield fragment(index, arguments=piece)

    def thinking(self, said: Said) -> Iterator[Json]:
        for piece in pieces(said.thoughts or self.habitual_thought):
            yield chunk({self.thoughts_field: piece})

    def finish(self, said: Said) -> str:
        return said.finish or ("tool_calls" if said.calls else "stop")


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chunk(delta: Json, finish: str | None = None) -> Json:
    """One event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def fragment(
    index: int | None = None,
    id: str | None = None,
    name: str | None = None,
    arguments: str | None = None,
) -> Json:
    """A fragment of a call. What is None is left out, as servers do behind the first fragment."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: Json = {"function": function}
    if index is not None:
        made["index"] = index
    if id is not None:
        made |= {"id": id, "type": "function"}
    return made


def _turn(message: Json) -> Turn:
    return Turn(
        role=str(message.get("role")),
        text=text_of(message.get("content")),
        calls=tuple(
            Called(str(one["function"]["name"]), one["function"].get("arguments") or "", str(one.get("id")))
            for one in message.get("tool_calls") or ()
        ),
        answers=str(message.get("tool_call_id") or ""),
    )


def text_of(content: Any) -> str:
    """The text of a message's content, parts joined by line ends."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if part.get("type") == "text")
    return str(content or "")
