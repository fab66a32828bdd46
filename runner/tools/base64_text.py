"""Base64 inside texts: where it stands, and whether it is a picture (D4).

What looks like base64 may be a name, a checksum or a gene, so `is_encoded` wants 512 characters of several kinds.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass

LEAST_UNNAMED = 512
"""Shorter runs of such characters may be a key, a token or a checksum that somebody asked for."""

_LEAST = 48
_LETTERS = "A-Za-z0-9+/=_-"
_DATA_URL = (
    r"(?i:data):(?P<mime>[\w.+-]{1,60}/[\w.+-]{1,100})?(?:;[\w.=+-]{1,60}){0,3};(?i:base64),"
    rf"(?P<payload>[{_LETTERS}]++(?:\\/[{_LETTERS}]*+)*+)"
)
_LINES = "|".join(
    rf"(?:[{_LETTERS}]{{{width}}}(?:\\[rn]|\r?\n){{1,2}}){{6,}}+[{_LETTERS}]{{0,{width}}}+" for width in (64, 76)
)
"""As `base64` and PEM files break it: lines of one width."""
_RUN = (
    rf"(?:(?<![{_LETTERS}])|(?<=\\/))"
    rf"(?P<run>{_LINES}|[A-Za-z0-9+/][{_LETTERS}]{{{_LEAST - 1},}}+(?:\\/[{_LETTERS}]*+)*+)"
)
_FOUND = re.compile(f"{_DATA_URL}|{_RUN}")
_WINDOW = 50_000
_LONGEST_BEGINNING = 400
_BREAKS = re.compile(r"\\[rn]|\\|\s+")
_ONLY_LETTERS = re.compile(rf"[\r\n{_LETTERS}]++")
_KINDS = (re.compile(r"[A-Z]"), re.compile(r"[a-z]"), re.compile(r"[0-9+/]"))

_LAST_BYTES = {"iVBO": b"IEND", "/9j/": b"\xff\xd9", "_9j_": b"\xff\xd9", "R0lG": b";", "UklG": b""}
"""By how the base64 of a PNG, JPEG, GIF or WebP begins."""

_IN_ADDRESS = re.compile(r"[^\s\"'<>]*+")
_ADDRESS = 2_048


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text that may be base64, `payload` without its line breaks. `mime` is set for a data URL, and empty
    where that names none."""

    start: int
    end: int
    payload: str
    mime: str | None = None


def runs(text: str) -> Iterator[Run]:
    """Every data URL, and every run of at least 48 of such characters that is no part of an address.

    Looked for a window at a time, since an expression that walks through a long text holds every other chat (Sm).
    """
    at = 0
    while at < len(text):
        end = min(at + _WINDOW, len(text))
        if _FOUND.search(text, at, end) is None:
            at = end if end == len(text) else end - _LONGEST_BEGINNING
            continue
        # What begins in a window may end behind it.
        found = _FOUND.search(text, at)
        assert found is not None
        at = found.end()
        payload = _BREAKS.sub("", found["payload"] or found["run"])
        if found["payload"] is not None:
            yield Run(found.start(), found.end(), payload, found["mime"] or "")
        elif not _is_in_address(text, found):
            yield Run(found.start(), found.end(), payload)


def only_base64(text: str) -> str | None:
    """The payload of a text of nothing else, without line breaks."""
    return _BREAKS.sub("", text) if _ONLY_LETTERS.fullmatch(text) else None


def is_encoded(payload: str) -> bool:
    """Whether a run is base64 by its look alone."""
    marks = sum(map(payload.count, "/_-"))  # a path has many of them
    return LEAST_UNNAMED <= len(payload) > 10 * marks and all(kind.search(payload) for kind in _KINDS)


def begins_as_picture(payload: str) -> bool:
    """Whether the first bytes are those of a PNG, JPEG, GIF or WebP."""
    first = _decoded(payload[:24])
    return first.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")) or first[:4] + first[8:12] == b"RIFFWEBP"


def is_whole_picture(payload: str) -> bool:
    """Whether the last bytes are those of such a picture too: a part of one is refused by every provider."""
    if not begins_as_picture(payload):
        return False
    body = payload.rstrip("=")
    last = _decoded(body[max(0, len(body) - 64) // 4 * 4 :])
    return _LAST_BYTES[payload[:4]] in last


def _decoded(payload: str) -> bytes:
    try:
        return base64.b64decode(payload.rstrip("=") + "=" * (-len(payload.rstrip("=")) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        return b""


def _is_in_address(text: str, found: re.Match[str]) -> bool:
    """Whether a run is the key or the path of an address, which is of no use without it."""
    _, scheme, before = text[max(0, found.start() - _ADDRESS) : found.start()].rpartition("://")
    return bool(scheme) and found.end() - found.start() <= _ADDRESS and _IN_ADDRESS.fullmatch(before) is not None
