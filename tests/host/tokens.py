"""A tokenizer of the test host's own: deterministic, quick, in the region of the real ones.

Shaped like `litellm.token_counter`, which the Host calls (requesters/litellmchat.py:count_tokens): three tokens a
message and three for the reply to come, so that the counts of parts sum to a little more than the count of the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PIECE = re.compile(r"[A-Za-z]{1,6}|\d{1,3}|[^\sA-Za-z\d]|\n+")
PER_MESSAGE = 3
PRIMING = 3
PER_IMAGE = 255


def count_text(text: str) -> int:
    """Tokens of a text: a CJK character or a sign is one, a Latin word one per six letters."""
    return len(_PIECE.findall(text))


def _count_content(content: Any) -> int:
    if isinstance(content, str):
        return count_text(content)
    total = 0
    for part in content or ():
        kind = part.get("type")
        if kind == "text":
            total += count_text(part.get("text") or "")
        elif kind in ("image_url", "image_base64"):
            total += PER_IMAGE
    return total


def _count_message(message: Mapping[str, Any]) -> int:
    total = PER_MESSAGE + _count_content(message.get("content"))
    for call in message.get("tool_calls") or ():
        total += count_text(call["function"]["name"]) + count_text(call["function"]["arguments"]) + 3
    return total


def count(messages: Sequence[Mapping[str, Any]], funcs: Sequence[Mapping[str, Any]] = ()) -> int:
    """Input tokens of one request: messages plus tool schemas."""
    total = PRIMING + sum(_count_message(message) for message in messages)
    for func in funcs:
        total += 8 + count_text(str(func["name"])) + count_text(str(func.get("description") or ""))
        total += count_text(json.dumps(func.get("parameters") or {}, ensure_ascii=False))
    return total
