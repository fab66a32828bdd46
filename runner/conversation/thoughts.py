"""Thoughts that stand in a model's text, as the Host renders them (host-contract §7.3)."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"<think>.*?</think>\s*", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"^\s*(?:<think>.*|.*?</think>\s*)", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """An old answer without its `<think>` parts; one that was never closed, or never opened, goes as a whole."""
    if "think>" not in text.lower():
        return text
    return _OPEN_THOUGHT.sub("", _THOUGHT.sub("", text), count=1)
