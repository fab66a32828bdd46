"""Thoughts that stand in a model's text: as the Host renders them, or as models write them."""

from __future__ import annotations

import re

_TAG = re.compile(r"<think>|<(/)think>\s*", re.IGNORECASE)
_WRITTEN_TAG = re.compile(r"<think(?:ing)?>|<(/)think(?:ing)?>\s*", re.IGNORECASE)


def without_thoughts(text: str, *, written: bool = False) -> str:
    """A text without its `<think>` parts, white space behind them included. `written`: without `<thinking>` ones, too,
    which models write themselves; an answer to people may speak of that tag.

    One that was never closed goes to the end of the text; one that was never opened goes from the beginning. Linear.
    """
    if "<think" not in (small := text.lower()) and "</think" not in small:
        return text
    kept: list[str] = []
    thought_from: int | None = None
    after = 0
    for tag in (_WRITTEN_TAG if written else _TAG).finditer(text):
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
