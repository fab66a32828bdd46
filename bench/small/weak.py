"""A simulated weak model: it can do the tasks, but writes as small models were measured to write.

It is a function of the request and a seed: the same request gives the same reply, as at temperature 0; where the
request asks for another temperature, each reply is drawn anew. Between it and the Host stands a server as llama.cpp's:
only well-formed Hermes calls become calls of the provider, all else is text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from bench.small.rates import (
    AFTER_PLAIN_TURNS,
    AFTER_TURNS_AS_CALLS,
    NO_CALL,
    WITHOUT_TURNS,
    Habit,
    Rates,
    rates_of,
)
from bench.small.seen import Seen, look
from runner.small.prompt import example_arguments
from runner.small.reply_tool import REPLY
from runner.small.shown import LOAD
from tests.host import ModelRequest, Reply, ToolCall

_HERMES: Final = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)
_PLAIN: Final = Habit(frozenset({"prose_instead_of_call"}), names_tool=False, called=None)


@dataclass
class WeakModel:
    """`model`: whose rates, "1.5b" or "0.5b". The only state is how often it was asked to vary."""

    model: str
    seed: int
    _varied: int = field(default=0, init=False)

    def __call__(self, request: ModelRequest) -> Reply:
        return served(self.write(request), request)

    def write(self, request: ModelRequest) -> str:
        """The raw text for a request."""
        random, seen, rates = self._random(request), look(request), rates_of(self.model)
        if seen.task is None:
            return "I am not sure what you would like me to do."
        writer = Writer(seen, random)
        step = seen.next
        if step is None:
            return writer.answer(self._answer_habit(seen, rates, random), seen.task.answer(seen.done))
        arguments = step.arguments(seen.done)
        if step.tool not in seen.tools:
            return writer.unlisted(step.tool)
        return writer.call(self._call_habit(seen, rates, random), step.tool, arguments)

    def _random(self, request: ModelRequest) -> Random:
        self._varied += "temperature" in request.extra_args
        draw = self._varied if "temperature" in request.extra_args else 0
        content = json.dumps([self.seed, draw, request.messages, request.funcs, request.extra_args], sort_keys=True)
        return Random(hashlib.sha256(content.encode()).hexdigest())

    def _call_habit(self, seen: Seen, rates: Rates, random: Random) -> Habit:
        habits = rates.calls_for(seen.asked)
        if seen.corrected:
            right = random.random() < rates.asked_anew
            habits = [each for each in habits if each.right == right] or habits
        elif not seen.asked.schema and random.random() > _kept(seen):
            return _PLAIN
        return random.choice(habits)

    def _answer_habit(self, seen: Seen, rates: Rates, random: Random) -> Habit:
        """Answers to results are written as in prompts that held results: there no tool was called for nothing."""
        if not seen.results:
            return random.choice(rates.answers_for(seen.asked))
        return Habit(frozenset(), names_tool=False, called=REPLY if seen.asked.reply_tool else None)


def _kept(seen: Seen) -> float:
    """The share of right calls that the form of earlier turns leaves."""
    return AFTER_PLAIN_TURNS / WITHOUT_TURNS if seen.plain_turns else AFTER_TURNS_AS_CALLS / WITHOUT_TURNS


def served(text: str, request: ModelRequest) -> Reply:
    """What llama.cpp's server makes of a text: well-formed Hermes calls of tools on offer are calls."""
    names = {func["name"] for func in request.funcs}
    calls = [call for body in _HERMES.findall(text) if (call := _strict(body, names))]
    return Reply(_HERMES.sub("", text).strip(), tool_calls=calls) if calls else Reply(text, chunks=4)


def _strict(body: str, names: set[str]) -> ToolCall | None:
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if value.get("name") not in names or not isinstance(value.get("arguments"), dict):
        return None
    return ToolCall(value["name"], value["arguments"])


@dataclass(frozen=True)
class Writer:
    """Writes one reply in a habit."""

    seen: Seen
    random: Random

    def answer(self, habit: Habit, words: str) -> str:
        """An answer is due."""
        if habit.called is None:
            return words
        if habit.called == REPLY:
            return self._shaped(habit, REPLY, {"text": words}) if self.seen.asked.reply_tool else words
        others = [name for name in self.seen.tools if name not in (REPLY, LOAD)]
        if not others:
            return words
        name = self.random.choice(others)
        return self._shaped(habit, name, dict(example_arguments(self.seen.tools[name])))

    def unlisted(self, tool: str) -> str:
        """The tool that is needed is not told in full."""
        if LOAD in self.seen.tools:
            return self._shaped(_PLAIN, LOAD, {"name": tool})
        return "I have no tool for that."

    def call(self, habit: Habit, tool: str, arguments: dict[str, Any]) -> str:
        """A call of this tool is due."""
        labels = habit.labels
        if "hallucinated_result" in labels:
            return f"<tool_response>\n{json.dumps({'result': 'ok', **arguments}, ensure_ascii=False)}\n</tool_response>"
        if labels & NO_CALL or labels & {"answered_from_memory", "loop"}:
            return self._words(habit, tool)
        if "wrong_tool_choice" in labels:
            tool, arguments = self._other(tool, arguments)
        written = self._shaped(habit, tool, self._bent(labels, tool, arguments))
        return written[: len(written) // 2] if "hit_length_limit" in labels else written

    def _words(self, habit: Habit, tool: str) -> str:
        if habit.labels & {"loop", "hit_length_limit"}:
            return "The answer is 12. Let me check the answer again. " * 40
        words = f"You can use the `{tool}` tool for that." if habit.names_tool else "It is about 12, as far as I know."
        return self._shaped(habit, REPLY, {"text": words}) if self.seen.asked.reply_tool and self._bound else words

    @property
    def _bound(self) -> bool:
        """Whether the server holds the reply to a call."""
        return self.seen.asked.schema

    def _other(self, tool: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        others = [name for name in self.seen.tools if name not in (tool, REPLY, LOAD)]
        if not others:
            return tool, arguments
        name = self.random.choice(others)
        return name, dict(example_arguments(self.seen.tools[name]))

    def _bent(self, labels: frozenset[str], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments with what is wrong about them."""
        schema: Mapping[str, Any] = self.seen.tools[tool]
        if labels & {"echo_schema_as_arguments", "echo_tool_list"}:
            return dict(schema)
        if "missing_required" in labels and not self._bound:
            arguments = dict(list(arguments.items())[1:])
        if "unknown_arg" in labels and not self._bound:
            arguments = {**arguments, "verbose": True}
        if "wrong_arg_value" in labels and arguments:
            name = next(reversed(arguments))
            arguments = {**arguments, name: f"{arguments[name]} 2023" if isinstance(arguments[name], str) else 0}
        if "wrong_type" in labels and arguments and not self._bound:
            name = next(reversed(arguments))
            arguments = {**arguments, name: [arguments[name]]}
        return arguments

    def _shaped(self, habit: Habit, tool: str, arguments: dict[str, Any]) -> str:
        """A call as text, with the wrapper and the damage of the habit."""
        if self._bound:
            return json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False, indent=2)
        labels = habit.labels
        if "wrong_tool_name" in labels:
            tool = re.sub(r"_(\w)", lambda match: match[1].upper(), tool)
        body = self._body(labels, tool, arguments)
        if "multiple_calls" in labels or "duplicate_calls" in labels:
            body = f"{body}\n{body}"
        before = f"To do this, you can use the `{tool}` function:\n\n" if "leading_text" in labels else ""
        after = "\n\nThis will do what you asked for." if "trailing_text" in labels else ""
        return f"{before}{body}{after}"

    def _body(self, labels: frozenset[str], tool: str, arguments: dict[str, Any]) -> str:
        form = self.seen.asked.form
        if form == "pythonic" and not labels & {"wrong_wrapper", "markdown_fence", "json_instead_of_pythonic"}:
            given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            return f"<|tool_call_start|>[{tool}({given})]<|tool_call_end|>"
        value: dict[str, Any] = {"name": tool, "arguments": arguments}
        if "flat_fields" in labels:
            value = {"name": tool, **arguments}
        if labels & {"nested_function", "wrong_keys"}:
            value = {"type": "function", "function": {"name": tool, "parameters": arguments}}
        text = json.dumps(value, ensure_ascii=False, indent=2 if "markdown_fence" in labels else None)
        if "double_braces" in labels:
            text = "{" + text + "}"
        if "missing_closer" in labels:
            text = text[:-1]
        if "markdown_fence" in labels:
            return f"```json\n{text}\n```"
        if form in ("native", "hermes") and "wrong_wrapper" not in labels:
            return f"<tool_call>\n{text}\n</tool_call>"
        return text
