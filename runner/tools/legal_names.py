"""Names that every provider takes, as near as can be to those that some refuse (D1, D3, K3)."""

from __future__ import annotations

import hashlib
import re

TOOL_NAME_CHARACTERS = 64
_TOOL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
_FIELD_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+", re.ASCII)


def is_tool_name(name: str) -> bool:
    """Whether every provider takes it as a tool's name; Gemini wants a letter or an underscore first."""
    return _TOOL_NAME.fullmatch(name) is not None


def is_field_name(name: str) -> bool:
    """Whether every provider takes it as the name of a field; Anthropic refuses anything else."""
    return _FIELD_NAME.fullmatch(name) is not None


def legal_name(name: str) -> str:
    """A tool's name that every provider takes, as near to a made-up one as can be: for the history (D3)."""
    return name if is_tool_name(name) else stem(name, "tool")[:TOOL_NAME_CHARACTERS] or "unknown_tool"


def stem(name: str, word: str) -> str:
    """The legal letters of a name, behind `word` where it does not begin with one. May be empty, or too long."""
    legal = _ILLEGAL.sub("_", name).strip("_-")
    return f"{word}_{legal}" if legal and not legal[0].isalpha() else legal


def with_digest(name: str, word: str) -> str:
    """The stem of a name, or `word` where nothing is left of it, and a hash of the whole: at most 64 characters."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{stem(name, word)[: TOOL_NAME_CHARACTERS - 9] or word}_{digest}"
