"""What the model and the run log see of a tool's result (D4, D5, D7, S7).

`Renderer.render` is pure and linear. For values that `is_heavy` says yes to, call it by `asyncio.to_thread`: it takes
milliseconds for each million characters or items. Everything else takes less than the loop notices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from runner.conversation import failures
from runner.conversation.cut import clip, head, sendable, tail
from runner.conversation.units import Image
from runner.guards import defang, frame, in_strings
from runner.host.events import Json
from runner.tools.catalogue import Entry, Kind
from runner.tools.content_elements import elements_of, text_of
from runner.tools.json_text import beginning, ending, measure, weighs
from runner.tools.pictures import Pictures
from runner.tools.references import References, collect

EVENT_CHARACTERS = 4_000
_HEAVY_CHARACTERS = 20_000
_PLUGIN_FAILURE = "error occurred when executing function "
_SKILL_READS = frozenset({"activate", "read_skill_resource"})
_REFERENCE_SHARE = 2
_TRIES = 4
_CHARACTERS_A_TOKEN = 6
"""Hardly a text has more; from there on its price tells how much of it may stay."""
_SURE = 0.98


class ErrorCode(StrEnum):
    """How a failure reads: `Error [code]: …` (S3)."""

    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    TIMEOUT = "timeout"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT = "limit"
    WAITING = "waiting"  # for consent (M2)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A result as it goes on.

    `text` is the tool message as sent, its frame included; `body` is the same without the frame. `images` follow in a
    user turn. `references` are the ones listed in `text`. `event_payload` is small and an object (D7). `terminate`:
    the tool asked to end the run; never set together with `error` (D5). `pending`: no result, only that the call goes
    on (S4).
    """

    text: str
    body: str
    images: tuple[Image, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    truncated: bool = False
    event_payload: Mapping[str, Json] = field(default_factory=dict)
    terminate: bool = False
    error: ErrorCode | None = None
    pending: bool = False


def is_heavy(entry: Entry, value: object) -> bool:
    """Whether rendering a value belongs into a thread."""
    return is_skill_text(entry) or weighs(value, _HEAVY_CHARACTERS)


def is_skill_text(entry: Entry) -> bool:
    """Whether a tool's results are instructions of a skill, which have a bound of their own."""
    return entry.kind is Kind.SKILL and entry.host_name in _SKILL_READS


@dataclass(frozen=True, slots=True)
class TokenBound:
    """A bound in tokens: how many there are by now, and what a text costs of them. A first price may take 0.3 s."""

    tokens: Callable[[], int]
    price: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders results within `result_chars` characters of the tool message as sent.

    `skills` is the bound of `activate` and `read_skill_resource` (25 % of the input budget); None = the same.
    """

    result_chars: int
    skills: TokenBound | None = None

    def render(self, entry: Entry, value: object) -> Rendered:
        """Any JSON value a tool returned, failures of its kind recognised (D4). Never raises."""
        error = _failure_of(entry.kind, value)
        terminate = isinstance(value, dict) and value.get("terminate") is True
        if isinstance(value, dict) and terminate:
            value = {name: part for name, part in value.items() if name != "terminate"}
        pictures, elements = Pictures(), elements_of(value)
        references_of = value = pictures.taken_from(value if elements is None else elements)
        if elements is not None and isinstance(value, list):
            value = text_of(elements, value)
        note = _SKILL_NOTE if is_skill_text(entry) else _NOTE
        shell = _Shell(f"{failures.prefix(error.value)}the tool reports:\n" if error else "", f"tool {entry.name}")

        def bounded(limit: int) -> Rendered:
            return _bounded(_ends(value, limit), references_of, note, shell, limit)

        of_skill = self.skills if is_skill_text(entry) else None
        rendered = bounded(self.result_chars) if of_skill is None else _within(of_skill, bounded)
        return replace(
            rendered,
            images=tuple(pictures.images),
            terminate=terminate and error is None,
            event_payload=_event_payload(value, rendered, len(pictures.images)),
            error=error,
        )

    def error(self, code: ErrorCode, text: str, *, said_by: str | None = None) -> Rendered:
        """A failure in words. `said_by` names the tool whose words `text` is: they are framed as data (S7)."""
        pictures = Pictures()
        text = str(pictures.taken_from(text))
        shell = _Shell(failures.prefix(code.value), f"tool {said_by}" if said_by else None)
        rendered = _bounded(_ends(text, self.result_chars), None, _NOTE, shell, self.result_chars)
        payload: dict[str, Json] = {"error": clip(rendered.body, EVENT_CHARACTERS).text}
        return replace(rendered, images=tuple(pictures.images), event_payload=payload, error=code)


def _within(bound: TokenBound, bounded: Callable[[int], Rendered]) -> Rendered:
    """A result as long as its tokens allow: half as long in Chinese as in English."""
    tokens = bound.tokens()
    limit = tokens * _CHARACTERS_A_TOKEN
    rendered = bounded(limit)
    for _ in range(_TRIES):
        # No byte costs more than one token, so most skills need no price.
        cost = len(rendered.text.encode())
        if cost > tokens:
            cost = bound.price(rendered.text)
        if cost <= tokens:
            break
        limit = int(min(limit, len(rendered.text)) * tokens / cost * _SURE)
        rendered = bounded(limit)
    return rendered


def _failure_of(kind: Kind, value: object) -> ErrorCode | None:
    """Some kinds of tools report failures as ordinary results, simulated platforms too."""
    failed = (kind is Kind.PLUGIN and isinstance(value, str) and value.startswith(_PLUGIN_FAILURE)) or (
        kind in (Kind.BUILTIN, Kind.PLATFORM) and isinstance(value, dict) and value.get("ok") is False
    )
    return ErrorCode.FAILED if failed else None


@dataclass(frozen=True, slots=True)
class _Ends:
    """The parts of a result's text that can be kept: with `whole`, `head` is all of it and `tail` the same."""

    head: str
    tail: str
    whole: bool
    total: str
    characters: int

    def cut(self, kept: int) -> str:
        return self.total.format(max(1, self.characters - kept))


def _ends(value: object, limit: int) -> _Ends:
    if isinstance(value, str):
        if len(value) <= limit:
            text = _sayable(value)
            return _Ends(text, text, True, "{:,}", len(text))
        return _Ends(_sayable(value[:limit]), _sayable(value[-_tail_size(limit) :]), False, "{:,}", len(value))
    start, whole = beginning(value, limit)
    start = _sayable(start)
    if whole:
        return _Ends(start, start, True, "{:,}", len(start))
    characters, more = measure(value)
    return _Ends(
        start, _sayable(ending(value, _tail_size(limit))), False, "more than {:,}" if more else "about {:,}", characters
    )


def _tail_size(limit: int) -> int:
    """The end gets a third of the room; a little more shows where its first grapheme begins."""
    return min(limit, limit // 3 + 256)


def _sayable(text: str) -> str:
    return defang(sendable(text))


_NOTE = "\n[… {} characters cut …]\n"
_SKILL_NOTE = "\n[… {} characters cut; read_skill_resource reads the rest …]\n"


@dataclass(frozen=True, slots=True)
class _Shell:
    """What stands around a body: the words of an error, and the frame that marks data from `source`."""

    prefix: str
    source: str | None

    def around(self, body: str) -> str:
        return self.prefix + (frame(body, self.source) if self.source else body)


def _bounded(ends: _Ends, value: object, note: str, shell: _Shell, limit: int) -> Rendered:
    if ends.whole:
        sent = shell.around(ends.head)
        if len(sent) <= limit:
            return Rendered(sent, ends.head)
    references = collect(value, limit // _REFERENCE_SHARE)
    room = limit - (len(shell.around("")))
    for _ in range(_TRIES):
        body = _cut_body(ends, references, note, room)
        sent = shell.around(body)
        if len(sent) <= limit:
            return Rendered(sent, body, references=references.kept, truncated=True)
        room -= len(sent) - limit
    # No room for the frame at all: a bound this small leaves only the beginning, as inert text.
    body = head(shell.prefix + ends.head, limit)
    return Rendered(body, body, truncated=True)


def _cut_body(ends: _Ends, references: References, note: str, room: int) -> str:
    block = references.block()
    room -= len(block)
    inner = room - len(note.format(ends.cut(0)))
    if inner <= 0:
        return head(ends.head, room) + block
    end = tail(ends.tail, inner // 3, whole=ends.whole)
    start = head(ends.head, inner - len(end))
    return start + note.format(ends.cut(len(start) + len(end))) + end + block


def _event_payload(value: object, rendered: Rendered, images: int) -> dict[str, Json]:
    """The value itself where it is small, else its bounded text with the same references as the message (D7)."""
    shown, whole = bounded_value(value, rendered.body, EVENT_CHARACTERS)
    if isinstance(shown, dict):
        return shown
    payload: dict[str, Json] = {"value": shown}
    if rendered.truncated or not whole:
        payload["truncated"] = True
    if rendered.references:
        payload["references"] = dict(rendered.references)
    if images:
        payload["images"] = images
    return payload


def bounded_value(value: object, body: str, limit: int) -> tuple[Json, bool]:
    """The value itself, as JSON has it, up to `limit` characters; beyond that the beginning of its text `body`. And
    whether it is the value."""
    text, whole = beginning(value, limit)
    return (_loaded(text) if whole else clip(body, limit).text), whole


def started_payload(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """A call's arguments for the run log: as they are where small, else their bounded text (D7)."""
    text, whole = beginning(dict(arguments), EVENT_CHARACTERS)
    if not whole:
        return {"arguments": head(sendable(text), EVENT_CHARACTERS), "truncated": True}
    shown = _loaded(text)
    return shown if isinstance(shown, dict) else {}


def _loaded(text: str) -> Json:
    """The value of a JSON text. Escapes in it hide characters that a database refuses: they go once they are plain."""
    return in_strings(json.loads(sendable(text)), sendable)
