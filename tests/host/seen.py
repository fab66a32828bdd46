"""What a played scenario looked like from outside, on the test host or in the real LangBot, and how two of them differ.

Ids, times and cursors are told apart only by what they stand for: the first row of a chat is `row 1` in both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .script import Json
from .transcript import whole_text

_NAMED = re.compile(r"(?<=Allowed tools: )\[.*\]")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_EVENT = re.compile(r"host:[0-9a-f]{32,64}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")
_TOOK = re.compile(r"\b\d+\.\d s\b")
"""What the line of a run tells of its time."""
_SPLIT = re.compile(r"; [a-z_]+_tokens_details\..*\Z")
"""The kinds of tokens into which LiteLLM splits the usage it is told, at the end of that line."""
_EPOCH = 1_500_000_000
_CURSORS = frozenset({"seq", "cursor", "next_cursor", "prev_cursor", "latest_cursor", "transcript_seq"})
_NUMBERS = frozenset({"id", "query_id", "subject_id", "message_id"})
_RECORDED = re.compile(r"\br(\d+)(?=_\d+_\d+\b)")
_LIST = re.compile(r"\s*\[\s*[\[{\"]")


@dataclass(frozen=True)
class SeenTurn:
    """One turn. `cards`: first and last text of each message in the chat; `results`: `(type, data)` in order."""

    cards: Sequence[tuple[str, str]]
    requests: Sequence[Json]
    results: Sequence[tuple[str, Json]]
    status: str
    reason: str | None
    usage: Json | None


@dataclass(frozen=True)
class SeenRow:
    """One row of the transcript, hidden ones included, as it is stored. `content` is cut, `content_json` is not."""

    seq: int
    role: str
    content: str | None
    content_json: Json | None
    attachments: Sequence[Json]
    metadata: Json

    @property
    def text(self) -> str:
        """The whole text."""
        return whole_text(self.content_json, self.content)


@dataclass(frozen=True)
class Seen:
    """All that was seen of a scenario. `names`: what to read in the place of words that only this Host uses."""

    turns: Sequence[SeenTurn]
    rows: Sequence[SeenRow]
    names: Mapping[str, str]

    def neutral(self) -> Json:
        """All of it in words that do not depend on the Host."""
        words = _Words(self.names, [row.seq for row in self.rows])
        return {
            "turns": [_turn(turn, words) for turn in self.turns],
            "rows": [_row(row, words) for row in self.rows],
        }


def contrast(one: Seen, other: Seen, known: Mapping[str, str]) -> list[str]:
    """Where two sights of one scenario differ: `path: this / that`. `known` maps a regular expression of paths to the
    reason why a difference there is none of the test host's mistakes.
    """
    found = _unlike(one.neutral(), other.neutral(), "")
    return [text for path, text in found if not any(re.fullmatch(pattern, path) for pattern in known)]


def _turn(turn: SeenTurn, words: _Words) -> Json:
    kinds = [kind for kind, _ in turn.results]
    deltas = [data for kind, data in turn.results if kind == "message.delta"]
    chunks = [data["chunk"] for data in deltas]
    return {
        # How many snapshots there were, and what the first one held, is a matter of time.
        "cards": [{"text": words.of(last), "grew": last.startswith(first)} for first, last in turn.cards],
        "requests": words.of(list(turn.requests)),
        "results": [[kind, words.of(data)] for kind, data in turn.results if kind != "message.delta"],
        "deltas": {
            "some": bool(chunks),
            "last": [str(chunk["content"]) for chunk in chunks[-1:]],
            "shape": sorted({key for chunk in chunks for key, value in chunk.items() if value is not None}),
            "first of all": kinds[:1] == ["message.delta"],
        },
        "status": turn.status,
        "reason": words.of(turn.reason),
        "usage": turn.usage,
    }


def _row(row: SeenRow, words: _Words) -> Json:
    return {
        "role": row.role,
        "content": words.of(row.content),
        "content_json": words.of(row.content_json),
        "attachments": words.of(list(row.attachments)),
        "metadata": words.of(row.metadata),
    }


class _Words:
    """Puts what a value stands for in the place of what only this Host calls so."""

    def __init__(self, names: Mapping[str, str], numbers: Sequence[int]) -> None:
        self._names = names
        self._ranks = {number: f"row {rank}" for rank, number in enumerate(sorted(numbers), 1)}

    def of(self, value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            # Events have numbers of their own, which nobody pages a chat by.
            words = _Words(self._names, []) if "event_type" in value or _is_page_of_events(value) else self
            return {self._text(name): words.of(one, name) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(one) for one in value]
        if key in _CURSORS and value is not None:
            rank = self._ranks.get(int(value), "a number")
            return f"{rank}, a {type(value).__name__}"
        if key in _NUMBERS and str(value).isdigit():
            return f"a number, a {type(value).__name__}"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > _EPOCH:
            return "a time"
        return value

    def _text(self, text: str) -> Any:
        if _LIST.match(text):
            try:
                return {"list": self.of(json.loads(text))}
            except ValueError:
                return "a list, cut" if text.endswith("...") else text
        for name, word in self._names.items():
            text = text.replace(name, word)
        text = _RECORDED.sub(lambda match: f"r<{self._ranks.get(int(match[1]), '?')}>", text)
        text = _NAMED.sub(lambda match: str(sorted(match[0].strip("[]").split(", "))), text)  # written from a set
        text = _SPLIT.sub("", _TOOK.sub("<seconds>", text))
        return _DATE.sub("<time>", _EVENT.sub("<event>", _UUID.sub("<id>", text)))


def _is_page_of_events(value: Mapping[str, Any]) -> bool:
    items = value.get("items")
    return isinstance(items, list) and bool(items) and "event_type" in items[0]


def _unlike(one: Any, other: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = list(dict.fromkeys([*one, *other]))
        return [
            found
            for key in keys
            for found in _unlike(one.get(key, _NOTHING), other.get(key, _NOTHING), f"{path}/{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            found
            for place, pair in enumerate(zip(one, other, strict=True))
            for found in _unlike(*pair, f"{path}/{place}")
        ]
    same = type(one) is type(other) and one == other
    return [] if same else [(path, f"{path}: {_short(one)} / {_short(other)}")]


class _Nothing:
    def __repr__(self) -> str:
        return "(nothing)"


_NOTHING = _Nothing()


def _short(value: Any, limit: int = 300) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-limit // 2 :]}"
