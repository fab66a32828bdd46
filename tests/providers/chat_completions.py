"""The form of OpenAI's chat completions, which most providers write with an accent of their own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.providers.dialect import Dialect, pieces
from tests.providers.said import Called, Heard, Json, Said, Turn


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
