"""GLM (Zhipu): no empty text beside calls, a call comes whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from tests.providers.dialect import ChatCompletions, Rule, fragment
from tests.providers.offered import orphans, unanswered
from tests.providers.said import Called, Heard, Json


def _no_empty_text_beside_calls(heard: Heard) -> str | None:
    for at, message in enumerate(heard.body["messages"]):
        if message.get("content") == "" and message.get("tool_calls"):
            return f"messages[{at}]:content和tool_calls 字段不能同时为空"
    return None


def _prompted(heard: Heard) -> str | None:
    asked = [message for message in heard.body["messages"] if message.get("role") == "user"]
    return None if asked and asked[-1].get("content") else "未正常接收到prompt参数。"


def _pairs(heard: Heard) -> str | None:
    return "messages 参数非法。请检查文档。" if unanswered(heard) or orphans(heard) else None


class GLM(ChatCompletions):
    name = "GLM"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("no_empty_text_beside_calls", "songquanpeng/one-api#1153", _no_empty_text_beside_calls),
        Rule("the_newest_words_are_there", "oyxning/astrbot_plugin_textadventure#1", _prompted),
        Rule("results_and_calls_pair", "lobehub/lobehub#11408", _pairs),
    )

    def new_id(self, call: Called, heard: Heard, index: int) -> str:
        return f"call_-{8469015594668440000 + next(self._numbers)}"

    def fragments(self, index: int, call: Called) -> Iterator[Json]:
        """A call comes whole, in one event."""
        yield fragment(index, call.id, call.name, call.written)

    def error(self, status: int, words: str) -> Json:
        return {"error": {"code": "1213" if "prompt" in words else "1214", "message": words}}
