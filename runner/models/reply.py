"""Reading one model reply, chunk by chunk, without I/O (C2).

A reply that is not streamed is a stream of one chunk. The reader keeps the provider fields that must go back to the
model, and knows whether the reply was cut; `runner/models/calls.py` makes calls of their fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

from langbot_plugin.api.entities.builtin.provider.message import (
    ContentElement,
    LLMTokenUsage,
    Message,
    MessageChunk,
    ToolCall,
    ToolCallChunk,
)

from callformats import is_thought_alone, without_thoughts
from runner.conversation.cut import sendable
from runner.conversation.readable import is_readable, without_invisible
from runner.conversation.wire import THOUGHTS
from runner.host.events import Json, Usage
from runner.models.call_text import whole_pairs
from runner.models.calls import Fragments, RawCall

_FINISH = "finish_reason"
_END_CHARACTERS: Final = 2_000
_CUT = frozenset({"length", "max_tokens"})
_FILTERED = frozenset(
    {
        "content_filter",
        "content_filtered",
        "contentfilter",
        "refusal",
        "safety",
        "image_safety",
        "recitation",
        "image_recitation",
        "language",
        "blocklist",
        "prohibited_content",
        "image_prohibited_content",
        "spii",
        "sensitive",
        "guardrail_intervened",
        "error_toxic",
    }
)
"""LiteLLM makes one word of most; other requesters and gateways hand on the provider's own."""
_MOST_TOKENS = 10**15
_MOST_EXTRAS = 64
_MOST_LEVELS = 4
_NAME_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole model reply. `text` is exactly what was streamed (characters); `cut` says the length limit ended it,
    `filtered` that a filter of the provider did (K6).

    The rest is set where calls are read from text (S1): `text` is then the visible part and `held` the end of it that
    was not shown yet; `wrote` is the format of calls that stood in the text; `faults`, `problem` and `refused` say what
    was no call, why, and the name in it; `answered`: the text came by the reply tool; `chanted`: it repeated itself;
    `raw`: what the model wrote, before it was read.
    """

    text: str
    calls: tuple[RawCall, ...]
    model_id: str
    provider_fields: Mapping[str, Json] | None = None
    usage: Usage | None = None
    cut: bool = False
    filtered: bool = False
    held: str = ""
    wrote: str | None = None
    faults: tuple[str, ...] = ()
    problem: str | None = None
    refused: str = ""
    answered: bool = False
    chanted: bool = False
    raw: str | None = None

    @property
    def said(self) -> str:
        """The text for the history: thoughts go back by provider fields or not at all (B5)."""
        return without_thoughts(self.text)

    @property
    def wordless(self) -> bool:
        """Whether it says nothing to the person in the chat: no visible character, or thoughts alone (K6, I8)."""
        return not is_readable(self.text) or is_thought_alone(_bare(self.text))

    @property
    def empty(self) -> bool:
        """Neither words nor a call: nothing came."""
        return not self.calls and not self.faults and self.wordless


class ReplyReader:
    """Feed it every chunk up to the end of the stream, then close it. Pure; used once."""

    def __init__(self, model_id: str) -> None:
        self._model_id = model_id
        self._text: list[str] = []
        self._half = ""
        self._calls = Fragments()
        self._fields: dict[str, Json] = {}
        self._reasoning: list[str] = []
        self._finish: str | None = None
        self._usage: Usage | None = None
        self.on_begin: Callable[[], None] | None = None
        """Told once, when the first event comes."""

    @property
    def thought(self) -> bool:
        """Whether thoughts came apart from the text."""
        return bool(self._reasoning)

    def feed(self, chunk: MessageChunk | Message) -> str:
        """Take one chunk (content is a fragment); returns the visible characters it brought. The first half of one that
        was cut waits for the second (K5).
        """
        self._begin()
        text = self._whole(_text_of(chunk.content))
        if text:
            self._text.append(text)
        for fragment in chunk.tool_calls or ():
            self._take_call(fragment)
        self._take_fields(chunk.provider_specific_fields or {})
        return text

    def _whole(self, text: str) -> str:
        if self._half and text:
            text, self._half = whole_pairs(self._half + text), ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text

    def take_usage(self, usage: LLMTokenUsage) -> None:
        """The provider's counters; the last report of a call counts."""
        self._begin()
        self._usage = usage_of(usage)

    def close(self) -> Reply:
        fields = dict(self._fields)
        if self._reasoning:
            fields[THOUGHTS] = sendable(whole_pairs("".join(self._reasoning)))
        return Reply(
            text="".join(self._text),
            calls=self._calls.calls(),
            model_id=self._model_id,
            provider_fields=fields or None,
            usage=self._usage,
            cut=self._finish in _CUT,
            filtered=self._finish in _FILTERED,
        )

    def _begin(self) -> None:
        begun, self.on_begin = self.on_begin, None
        if begun is not None:
            begun()

    def _take_call(self, fragment: ToolCall | ToolCallChunk) -> None:
        fields = cast(Mapping[str, Json], fragment.provider_specific_fields or {})
        self._calls.take(fragment.id, fragment.function.name, fragment.function.arguments or "", fields)

    def _take_fields(self, fields: Mapping[str, object]) -> None:
        for key, value in fields.items():
            if key == _FINISH:
                self._finish = str(value).lower() if value else self._finish
            elif key == THOUGHTS and isinstance(value, str):
                self._reasoning.append(value)  # arrives in fragments; everything else is a snapshot
            else:
                self._fields[key] = cast(Json, value)


def usage_of(usage: LLMTokenUsage) -> Usage:
    """The SDK's counters as ours. Nested details are flattened by a dot. What cannot be a number of tokens (negative,
    huge, of another type) counts as missing, and a missing counter as zero (I8).
    """
    prompt, completion = _tokens(usage.prompt_tokens) or 0, _tokens(usage.completion_tokens) or 0
    extras = dict(islice(_flat(usage.model_extra or {}, "", _MOST_LEVELS), _MOST_EXTRAS))
    return Usage(prompt, completion, _tokens(usage.total_tokens) or prompt + completion, extras)


def _tokens(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_TOKENS:
        return None
    return value


def _flat(values: Mapping[Any, object], prefix: str, levels: int) -> Iterator[tuple[str, int]]:
    for key, value in values.items():
        name = sendable(f"{prefix}{key}")[:_NAME_CHARACTERS]
        if isinstance(value, Mapping):
            if levels:
                yield from _flat(value, f"{name}.", levels - 1)
        elif (tokens := _tokens(value)) is not None:
            yield name, tokens


def _bare(text: str) -> str:
    """Without what nobody sees; of a long text at both ends, where the thoughts begin and the answer would stand."""
    if len(text) <= 2 * _END_CHARACTERS:
        return without_invisible(text)
    head, tail = text[:_END_CHARACTERS], text[-_END_CHARACTERS:]
    return without_invisible(head) + text[_END_CHARACTERS:-_END_CHARACTERS] + without_invisible(tail)


def _text_of(content: str | Sequence[ContentElement] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(element.text or "" for element in content if element.type == "text")
