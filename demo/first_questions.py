"""Ten first questions of visitors, asked through the real LangBot: `python -m demo.first_questions`.

The questions and what counts as a good answer were written before any prompt or tool was tried on them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """`tool` has to have been called, `pattern` has to be found in the answer; either may be empty."""

    text: str
    tool: str
    pattern: str


ENGLISH: Final[Sequence[Question]] = (
    Question("What is your name?", "", r"LocalAgent"),
    Question("What time is it?", "current_time", r"\d{1,2}[:.]\d\d"),
    Question("What is 12.5 % of 84?", "calculate", r"10\.5"),
    Question("Note that the milk is empty", "add_note", r"(?i)milk|note"),
    Question("What do I have in my notes?", "list_notes", r"(?i)milk"),
)
CHINESE: Final[Sequence[Question]] = (
    Question("你好，你是谁？", "", r"LocalAgent"),
    Question("今天星期几？", "", r"(星期|周|礼拜)[一二三四五六日天]"),
    Question("5 英里是多少公里？", "convert_units", r"8\.0[45]"),
    Question("帮我记一下：明天下午三点开会", "add_note", r"[记笔会]"),
    Question("我的笔记里有关于开会的内容吗？", "", r"三点|3\s*点|15[:：]00"),
)


def is_good(question: Question, answer: str, tools: Sequence[str]) -> bool:
    """Whether an answer, with the tools that were called for it, is what the visitor asked for."""
    return re.search(question.pattern, answer) is not None and (not question.tool or question.tool in tools)
