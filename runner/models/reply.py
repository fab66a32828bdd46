"""Reading one model reply, chunk by chunk, without I/O (C2).

A reply that is not streamed is a stream of one chunk. The reader merges fragments of tool calls, keeps the provider
fields that must go back to the model, and knows whether the reply was cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from langbot_plugin.api.entities.builtin.provider.message import (
    ContentElement,
    LLMTokenUsage,
    Message,
    MessageChunk,
    ToolCall,
    ToolCallChunk,
)

from runner.conversation.thoughts import without_thoughts
from runner.events import Json, Usage

_FINISH = "finish_reason"
_REASONING = "reasoning_content"
_CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})
_FILTERED = frozenset({"content_filter", "content_filtered", "safety", "recitation", "prohibited_content", "sensitive"})


@dataclass(frozen=True, slots=True)
class RawCall:
    """A tool call as the model wrote it: `arguments` may be empty, broken or not JSON at all (D3).

    `certain` False: it was read from text and had to be mended, or stood in a thought (J3).
    """

    id: str
    name: str
    arguments: str
    provider_fields: Mapping[str, Json] | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole model reply. `text` is exactly what was streamed (characters); `cut` says the length limit ended it, `filtered` that the
    provider's filter did.

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
    def empty(self) -> bool:
        """No visible character and no call: to the person in the chat, nothing came."""
        return not self.calls and not self.faults and not self.text.strip()


@dataclass(slots=True)
class _Growing:
    """A call whose arguments are still arriving."""

    id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    fields: dict[str, Json] = field(default_factory=dict)

    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_blank(self) -> bool:
        return not any(piece.strip() for piece in self.pieces)

    def is_complete_object(self) -> bool:
        newest = next((piece for piece in reversed(self.pieces) if piece.strip()), "")
        # Looked at before joining: a long object arrives in thousands of pieces.
        return newest.rstrip().endswith("}") and _is_object(self.arguments())


class ReplyReader:
    """Feed it every chunk up to the end of the stream, then close it. Pure; used once."""

    def __init__(self, model_id: str) -> None:
        self._model_id = model_id
        self._text: list[str] = []
        self._calls: list[_Growing] = []
        self._fields: dict[str, Json] = {}
        self._reasoning: list[str] = []
        self._finish: str | None = None
        self._usage: Usage | None = None
        self.on_begin: Callable[[], None] | None = None
        """Told once, when the first chunk comes."""

    def feed(self, chunk: MessageChunk | Message) -> str:
        """Take one chunk (content is a fragment); returns the visible characters it brought."""
        begun, self.on_begin = self.on_begin, None
        if begun is not None:
            begun()
        text = _text_of(chunk.content)
        if text:
            self._text.append(text)
        for fragment in chunk.tool_calls or ():
            self._take_fragment(fragment)
        self._take_fields(chunk.provider_specific_fields or {})
        return text

    def take_usage(self, usage: LLMTokenUsage) -> None:
        """The provider's counters; the last report of a call counts."""
        self._usage = usage_of(usage)

    def close(self) -> Reply:
        fields = dict(self._fields)
        if self._reasoning:
            fields[_REASONING] = "".join(self._reasoning)
        return Reply(
            text="".join(self._text),
            calls=tuple(call for growing in self._calls for call in _closed(growing)),
            model_id=self._model_id,
            provider_fields=fields or None,
            usage=self._usage,
            cut=self._finish in _CUT,
            filtered=(self._finish or "").lower() in _FILTERED,
        )

    def _take_fragment(self, fragment: ToolCall | ToolCallChunk) -> None:
        name, text = fragment.function.name, fragment.function.arguments or ""
        call = self._continued(fragment.id, name, text)
        if call is None:
            call = _Growing(fragment.id, name)
            self._calls.append(call)
        call.name = call.name or name
        call.pieces.append(text)
        call.fields.update(cast(Mapping[str, Json], fragment.provider_specific_fields or {}))

    def _continued(self, call_id: str, name: str, text: str) -> _Growing | None:
        """The call that this fragment goes on with, None when it starts a new one.

        Identity first, position second; never by name or by equal arguments. Under one id a new name, or a
        new object, starts a new call once the arguments so far are complete; none are complete, too.
        """
        last = self._calls[-1] if self._calls else None
        if not call_id and not name:
            return last
        if call_id:
            same = next((call for call in reversed(self._calls) if call.id == call_id), None)
        else:
            same = last if last is not None and not last.id else None
        if same is None:
            return None
        renamed = bool(name) and name != same.name
        if renamed and same.is_blank():
            return None
        starts_new = renamed or text.lstrip().startswith("{")
        return None if starts_new and same.is_complete_object() else same

    def _take_fields(self, fields: Mapping[str, object]) -> None:
        for key, value in fields.items():
            if key == _FINISH:
                self._finish = str(value) if value else self._finish
            elif key == _REASONING and isinstance(value, str):
                self._reasoning.append(value)  # arrives in fragments; everything else is a snapshot
            else:
                self._fields[key] = cast(Json, value)


def usage_of(usage: LLMTokenUsage) -> Usage:
    """The SDK's counters as ours. Counters that are missing count as zero; nested details are flattened by a dot."""
    extras = _flat(usage.model_extra or {})
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return Usage(prompt, completion, usage.total_tokens or prompt + completion, extras)


def _flat(values: Mapping[str, object], prefix: str = "") -> dict[str, int]:
    flat: dict[str, int] = {}
    for key, value in values.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            flat[prefix + key] = value
        elif isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
    return flat


def _text_of(content: str | Sequence[ContentElement] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(element.text or "" for element in content if element.type == "text")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _closed(call: _Growing) -> list[RawCall]:
    """The finished call; several when a server glued whole objects together (`{..}{..}`)."""
    objects = _glued_objects(call.arguments()) or [call.arguments()]
    fields = call.fields or None
    # Whoever claims ids for the run gives the further ones theirs.
    return [RawCall("" if place else call.id, call.name, arguments, fields) for place, arguments in enumerate(objects)]


def _glued_objects(text: str) -> list[str]:
    """The JSON objects of a text that is nothing but two or more of them, else an empty list."""
    decoder, objects, position = json.JSONDecoder(), [], 0
    text = text.strip()
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        objects.append(text[position:end])
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return objects if len(objects) > 1 else []
