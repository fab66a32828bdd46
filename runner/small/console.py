"""What a console or log tells: its lines, which of them are new, and what kind of trouble each reports (S5). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from runner.host.events import Json

_DIALOG = re.compile(r"^\W{0,3}(?:dialog|alert|confirm|prompt|beforeunload)\b\W", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"\[exception\]|\buncaught\b|\bunhandled\b|^traceback\b|^\W{0,3}[A-Za-z.]{0,60}(?:Error|Exception):", re.IGNORECASE
)
_ERROR = re.compile(r"\b(?:error|fatal|critical)\b", re.IGNORECASE)
_NO_ERROR = re.compile(r"\b(?:0|no|without)\s{1,3}errors?\b", re.IGNORECASE)

_KINDS: Final = {
    **dict.fromkeys(("error", "fatal", "critical", "assert"), "error"),
    **dict.fromkeys(("exception", "pageerror"), "exception"),
    **dict.fromkeys(("dialog", "alert", "confirm", "prompt", "beforeunload"), "dialog"),
    **dict.fromkeys(("log", "info", "debug", "warn", "warning", "trace", "verbose"), None),
}
"""What the kinds of entries are that come with one; None is no trouble."""

_JSON = re.compile(r"\s*(?:\[\s*[\[{\"\]]|\{\s*[\"}])")
_TEXT = ("text", "message", "msg")
_KIND = ("type", "level", "severity")
_HOLDS_LINES = frozenset({"console", "log", "logs", "messages", "entries", "errors", "output", "lines", "content"})
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One entry on one line. `kind`: what the tool itself calls it, in lower case; "" where it says nothing."""

    text: str
    kind: str = ""


def lines_of(body: str) -> tuple[Line, ...]:
    """The entries of a result: of a JSON value those with a text, else the lines that are not blank.

    JSON that cannot be read, as when it was cut, has none: its pieces are no lines.
    """
    if not _JSON.match(body):
        return tuple(_split(body))
    try:
        return tuple(_entries(json.loads(body), 0))
    except (ValueError, RecursionError):
        return ()


def overlap(before: Sequence[Line], now: Sequence[Line]) -> int:
    """How many entries at the start of `now` are the last ones of `before`. Linear."""
    fails = [0] * len(now)
    for at in range(1, len(now)):
        fails[at] = _longer(now, fails, fails[at - 1], now[at])
    matched = 0
    for line in before:
        matched = _longer(now, fails, matched, line)
    return matched


def _longer(now: Sequence[Line], fails: Sequence[int], matched: int, line: Line) -> int:
    """How much of the start of `now` ends with `line`, when `matched` of it ended before."""
    while matched and (matched == len(now) or line != now[matched]):
        matched = fails[matched - 1]
    return matched + 1 if now and line == now[matched] else matched


def labelled(line: Line) -> str | None:
    """An entry named as what it is (`error: …`, `exception: …`, `dialog: …`); None when it reports no trouble.

    A question that the page asks is a dialog and no error.
    """
    if line.kind in _KINDS:
        named = _KINDS[line.kind]
    elif _DIALOG.search(line.text):
        named = "dialog"
    elif _EXCEPTION.search(line.text):
        named = "exception"
    else:
        named = "error" if _ERROR.search(line.text) and not _NO_ERROR.search(line.text) else None
    return f"{named}: {line.text}" if named else None


def _entries(value: Json, depth: int) -> Iterator[Line]:
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _split(value)
    elif isinstance(value, list):
        for each in value:
            yield from _entries(each, depth + 1)
    elif isinstance(value, dict):
        text = _first(value, _TEXT)
        if text is not None:
            yield Line(" ".join(text.split()), (_first(value, _KIND) or "").lower())
            return
        for name, each in value.items():
            if isinstance(each, list | dict) or name.lower() in _HOLDS_LINES:
                yield from _entries(each, depth + 1)


def _first(entry: dict[str, Json], names: Sequence[str]) -> str | None:
    return next((value for name in names if isinstance(value := entry.get(name), str)), None)


def _split(text: str) -> Iterator[Line]:
    for line in text.splitlines():
        if words := " ".join(line.split()):
            yield Line(words)
