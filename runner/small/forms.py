"""Text forms of tool use: how tools are told in the prompt, and how earlier turns read in that form (S1, S8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from callformats import format_named, render
from config.choices import CallFormat
from runner.conversation.cut import clip
from runner.conversation.request import ToolSpec
from runner.conversation.units import AssistantTurn, Part, Told, ToolResult, Unit, UserTurn
from runner.host.events import Json

FORM_IDS: Final[Mapping[CallFormat, str]] = {
    CallFormat.TAGS: "hermes",
    CallFormat.PYTHONIC: "pythonic",
    CallFormat.JSON: "json",
    CallFormat.GUIDED: "json",
}
"""The call format (`callformats`) of each text form of the settings."""

TOOLS_INTRO: Final = "# Tools\nYou can use these tools, one JSON object a line:"
CALL_LINE: Final = "To use a tool, write only the call, exactly in this form, and nothing after it:"
THEN_LINE: Final = "The result comes in the next message."
PLAIN_LINE: Final = "Where no tool is needed, answer in plain words."
REPLY_LINE: Final = "Every reply is one call. To say something to the user, call {tool}."


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as `render` takes one."""

    name: str
    arguments: str | Mapping[str, Json]


def tools_in_words(tools: Sequence[ToolSpec], form: str, *, answer_by: str | None) -> str:
    """The tools, the form of a call, and how to answer: a block for the system message.

    `form`: a call format's id; `answer_by`: the tool that answers go through, None: in plain words.
    """
    listed = (
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}, ensure_ascii=False
        )
        for tool in tools
    )
    shape = render(WrittenCall("tool_name", {"argument": "value"}), form)
    answer = REPLY_LINE.format(tool=answer_by) if answer_by else PLAIN_LINE
    return "\n".join([TOOLS_INTRO, *listed, CALL_LINE, shape, THEN_LINE, answer])


def family_of(format_id: str) -> CallFormat:
    """The form of the settings that is nearest to a format a model wrote by itself."""
    if "pythonic" in format_id or format_id in ("tool-code", "llama3-python-call", "smollm3-code"):
        return CallFormat.PYTHONIC
    known = format_named(format_id)
    return CallFormat.TAGS if known.opens and known.plain is None else CallFormat.JSON


class Replay:
    """Units in the words of one form. Each unit is converted once, since counting goes by identity.

    `result_chars` cuts results; None leaves them as they are. `answer_by`: plain answers are written as calls of this
    tool, the very form the model is asked to write (S8).
    """

    def __init__(self, form: str | None, *, answer_by: str | None, result_chars: int | None) -> None:
        self._form = form
        self._answer_by = answer_by
        self._result_chars = result_chars
        self._known: dict[int, tuple[Unit, tuple[Unit, ...]]] = {}
        self._joined: dict[tuple[int, ...], tuple[tuple[Unit, ...], Unit]] = {}

    def units(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """The conversation in this form; roles alternate as before."""
        done: list[Unit] = []
        for place, unit in enumerate(units):
            if place and self._says_again(units[place - 1], unit):
                continue
            for each in self._converted(unit):
                if done and isinstance(each, UserTurn) and isinstance(last := done[-1], UserTurn):
                    done[-1] = self.join(last, each)
                else:
                    done.append(each)
        return tuple(done)

    def join(self, first: UserTurn, second: UserTurn) -> UserTurn:
        """Two user turns as one; the same object for the same two."""
        key = (id(first), id(second))
        known = self._joined.get(key)
        if known is None:
            known = ((first, second), UserTurn((*first.parts, *second.parts), first.span))
            self._joined[key] = known
        joined = known[1]
        assert isinstance(joined, UserTurn)
        return joined

    def _converted(self, unit: Unit) -> tuple[Unit, ...]:
        known = self._known.get(id(unit))
        if known is None:
            known = (unit, self._convert(unit))
            self._known[id(unit)] = known
        return known[1]

    def _convert(self, unit: Unit) -> tuple[Unit, ...]:
        if isinstance(unit, UserTurn):
            return (unit,)
        if self._form is None:
            return (unit.with_results(tuple(map(self._short, unit.results))),) if self._result_chars else (unit,)
        if not unit.calls:
            return (AssistantTurn(self._answer(unit.text), author=unit.author, span=unit.span),)
        calls = "\n".join(render(WrittenCall(call.name, call.arguments), self._form) for call in unit.calls)
        told: tuple[Part, ...] = tuple(_told(self._short(result)) for result in unit.results)
        return (AssistantTurn(calls, author=unit.author, span=unit.span), UserTurn(told, unit.span))

    def _says_again(self, before: Unit, unit: Unit) -> bool:
        """Whether an answer only quotes what the model sent by its own call: shown twice, it would be sent twice."""
        if self._form is None or self._answer_by is None or not isinstance(before, AssistantTurn):
            return False
        sent = [call.arguments for call in before.calls if call.name == self._answer_by]
        return isinstance(unit, AssistantTurn) and not unit.calls and _texts(sent) == unit.text

    def _answer(self, text: str) -> str:
        if self._answer_by is None or self._form is None or not text.strip():
            return text
        return render(WrittenCall(self._answer_by, {"text": text}), self._form)

    def _short(self, result: ToolResult) -> ToolResult:
        if self._result_chars is None or len(result.text) <= self._result_chars:
            return result
        return ToolResult(result.call_id, result.name, clip(result.text, self._result_chars).text)


def _texts(arguments: Sequence[str]) -> str | None:
    """The texts that calls of an answering tool sent, as they stand in the history; None without any."""
    texts = [str(json.loads(each).get("text", "")) for each in arguments]
    return "\n\n".join(texts) if texts else None


def _told(result: ToolResult) -> Told:
    return Told(f"Result of {result.name}:\n{result.text}", result.name, result.text)
