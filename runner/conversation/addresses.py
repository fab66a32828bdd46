"""Which addresses of files may be told to a model (B4)."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from runner.guards import without_keys

_CHARACTERS = 1_000
_KEY_CHARACTERS = 20
_SCHEMES = ("http://", "https://")
_PLAIN = re.compile(r"[^\s\\<>\"'`\[\]{}|^\x00-\x1f\x7f]+")
_KINDS = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))
_MAY_HOLD_A_VALUE = re.compile(r"[?#=;&]")


def tellable(address: str | None) -> str:
    """The address of a file; empty where there is none, or where something in it may be a key.

    A key may be a query, a user, or a part of the path of 20 or more characters of several kinds: Telegram's addresses
    of files hold the bot's token.
    """
    if not address or len(address) > _CHARACTERS or not address.lower().startswith(_SCHEMES):
        return ""
    if not _PLAIN.fullmatch(address) or without_keys(address) != address:
        return ""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return ""
    rest = address.partition("://")[2]
    if not host or "@" in _decoded(parts.netloc) or _MAY_HOLD_A_VALUE.search(_decoded(rest)):
        return ""
    return "" if any(map(_may_be_key, _decoded(parts.path).split("/"))) else address


def _decoded(text: str) -> str:
    """The text without percent signs, however often they were put on each other."""
    for _ in range(4):
        plain = unquote(text)
        if plain == text:
            break
        text = plain
    return text


def _may_be_key(segment: str) -> bool:
    written = sum(map(str.isascii, segment))
    return written >= _KEY_CHARACTERS and sum(bool(kind.search(segment)) for kind in _KINDS) > 1
