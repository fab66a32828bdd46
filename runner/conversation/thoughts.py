"""Thoughts that stand in a model's text, as the Host renders them."""

from __future__ import annotations

import re

_TAG = re.compile(r"<think>|<(/)think>\s*", re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """An old answer without its `<think>` parts, white space behind them included.

    One that was never closed goes to the end of the text; one that was never opened goes from the beginning. Linear.
    """
    kept: list[str] = []
    thought_from: int | None = None
    after = 0
    for tag in _TAG.finditer(text):
        closes = bool(tag[1])
        if thought_from is None and not closes:
            kept.append(text[after : tag.start()])
            thought_from = tag.start()
        elif closes:
            if thought_from is None:
                kept.clear()
            thought_from, after = None, tag.end()
    if thought_from is None:
        kept.append(text[after:])
    return "".join(kept)
