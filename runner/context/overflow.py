"""Does a model's failure mean that the request was too long for it? (C7)

The Host translates its errors into the workspace's language and passes no body on, so texts in eight languages,
providers' own texts and the size of the request all have a say.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

CLOSE: Final = 0.9
"""From this share of the window on, any failure may be an overflow that the provider words badly."""

HOST_TEXTS: Final = (
    "context length exceeded",
    "上下文长度超限",
    "上下文長度超出限制",
    "コンテキスト長の上限を超えました",
    "ความยาวบริบทเกินขีดจำกัด",
    "đã vượt quá độ dài ngữ cảnh",
    "se superó el límite de contexto",
    "превышена длина контекста",
)
"""LangBot's sentence for it in its eight languages, lower case."""

HOST_RATE_LIMITS: Final = (
    "rate limit exceeded or insufficient balance",
    "请求过于频繁或余额不足",
    "請求過於頻繁或餘額不足",
    "リクエスト制限を超えたか、残高が不足しています",
    "เกินขีดจำกัดคำขอหรือยอดเงินไม่เพียงพอ",
    "vượt giới hạn yêu cầu hoặc số dư không đủ",
    "límite de solicitudes excedido o saldo insuficiente",
    "превышен лимит запросов или недостаточно средств",
)

_RATE_LIMIT = re.compile(
    r"rate.?limit|too many requests|\b429\b|throttl|tokens? per (?:min|minute|second|hour|day)|\b[tr]p[mdh]\b|quota"
    r"|请求过于频繁|请求频率|速率限制|限流",
    re.IGNORECASE,
)
_OUTPUT_LIMIT = re.compile(
    r"max_(?:completion_|output_|new_)?tokens.{0,40}(?:too large|at most|exceed|must be)", re.IGNORECASE
)
_OVERFLOW = re.compile(
    "|".join(
        (
            r"context[ _-]?(?:length|window|size)[ _-]?(?:is |was )?(?:exceed|too|limit)",
            r"exceed\w* (?:the |its |this |your |max(?:imum)? |available |model'?s? |allowed |configured )*"
            r"(?:context|token limit|prompt|input (?:length|tokens|limit)|size)",
            r"exceed\w* (?:the )?(?:model )?tokens? limit",
            r"(?:prompt|input|request|messages?|conversation)(?: \w+){0,5} (?:is |are )?too (?:long|large|big)",
            r"too (?:long|large) for (?:the |requested |this )*(?:model|context)",
            r"max(?:imum)? (?:context|prompt|input|sequence|model)[ _-]?(?:length|len|size|tokens)",
            r"(?:greater|larger|longer) than (?:the )?(?:model'?s? )?(?:maximum |available )?context",
            r"reduce the length of (?:the |your )?(?:messages|prompt|input)",
            r"input token count.{0,40}exceed",
            r"too many (?:input )?tokens",
            r"request_too_large|string_above_max_length|context_length|context_window",
            r"\b4(?:00|13)\b.{0,20}\(no body\)",
            r"(?:上下文|输入|提示词?|输入内容|token).{0,12}(?:超长|过长|超出|超过|超限)",
            r"(?:超出|超过|超過).{0,12}(?:上下文|最大长度|最大長度|token)",
        )
    ),
    re.IGNORECASE | re.DOTALL,
)


class Overflow(StrEnum):
    """How sure it is: the text says so, only the size suggests it, or neither."""

    SAID = "said"
    CLOSE = "close"
    NONE = "none"


def recognise(text: str, *, counted: int, window: int, reserve: int = 0) -> Overflow:
    """Judge a failure text. `counted`: Host tokens of the refused request; `window`, `reserve`: the budget's.

    The reserve takes part because many providers add the reply they are asked for to the request's size.
    """
    lowered = text.lower()
    if any(sentence in lowered for sentence in HOST_RATE_LIMITS) or _RATE_LIMIT.search(text):
        return Overflow.NONE
    if any(sentence in lowered for sentence in HOST_TEXTS):
        return Overflow.SAID
    if _OVERFLOW.search(text) and not _OUTPUT_LIMIT.search(text):
        return Overflow.SAID
    return Overflow.CLOSE if counted + reserve >= CLOSE * window else Overflow.NONE


def is_overflow(text: str, *, counted: int, window: int) -> bool:
    return recognise(text, counted=counted, window=window) is not Overflow.NONE
