"""How often weak models write what, fitted from the raw replies in `tests/callformats/cases/small_model_*.jsonl`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

CASES: Final = Path(__file__).parents[2] / "tests" / "callformats" / "cases"
FILES: Final = ("small_model_dumps.jsonl", "small_model_runs.jsonl")
MODELS: Final = ("1.5b", "0.5b")

NO_CALL: Final = frozenset(
    ("prose_instead_of_call", "reply_instead_of_call", "plain_text_instead_of_json", "unparseable_json")
)
"""Labels of a reply without a call in it."""
DAMAGING: Final = NO_CALL | {
    "answered_from_memory",
    "wrong_tool_choice",
    "wrong_arg_value",
    "wrong_type",
    "missing_required",
    "echo_schema_as_arguments",
    "echo_tool_list",
    "hallucinated_result",
    "hit_length_limit",
    "loop",
}
"""Labels of a reply that does not lead where it should, however kindly it is read."""

AFTER_PLAIN_TURNS: Final = 1 / 12
AFTER_TURNS_AS_CALLS: Final = 11 / 12
WITHOUT_TURNS: Final = 11 / 12
"""Right calls of the 1.5B model by the form of earlier turns, 12 conversations each: answers in plain words, answers
written as calls, no earlier turns. The only numbers that are not in the case files; both models get their ratios."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How a request asks: `form` "native", "hermes", "json" or "pythonic"; whether the reply tool and a schema are with
    it; `native_turns`: earlier calls stand in it as the provider's own tool turns."""

    form: str
    reply_tool: bool = False
    schema: bool = False
    native_turns: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """One raw reply, as what it did: its labels; `names_tool`: its words name a tool; `called`: the tool it called."""

    labels: frozenset[str]
    names_tool: bool
    called: str | None

    @property
    def right(self) -> bool:
        return not self.labels & DAMAGING


@dataclass(frozen=True, slots=True)
class Rates:
    """One model. `calls` and `answers`: habits where a call was due, and where words were. `asked_anew`: how often a
    prompt that went wrong goes right when it is put in another way, which is what a correction does."""

    calls: Mapping[Asked, Sequence[Habit]]
    answers: Mapping[Asked, Sequence[Habit]]
    asked_anew: float

    def calls_for(self, asked: Asked) -> Sequence[Habit]:
        return _nearest(self.calls, asked)

    def answers_for(self, asked: Asked) -> Sequence[Habit]:
        return _nearest(self.answers, asked)


def _nearest(known: Mapping[Asked, Sequence[Habit]], asked: Asked) -> Sequence[Habit]:
    """The rows of this way of asking, or of the nearest one that was measured."""
    # Native turns weigh most unless a schema binds the reply; then the schema or the reply tool decide more than the
    # words in which the tools are told.
    ways = (
        asked,
        Asked("native", native_turns=True) if asked.native_turns and not asked.schema else asked,
        Asked("native", asked.reply_tool, asked.schema) if asked.schema or asked.reply_tool else asked,
        Asked("native", schema=True) if asked.schema else asked,
        Asked(asked.form),
        Asked("native"),
    )
    return next(known[way] for way in ways if known.get(way))


@cache
def rates_of(model: str) -> Rates:
    """The rates of "1.5b" or "0.5b"."""
    rows = [row for row in _rows() if model in row["model"] and _asked(row) is not None]
    calls: dict[Asked, list[Habit]] = defaultdict(list)
    answers: dict[Asked, list[Habit]] = defaultdict(list)
    for row in rows:
        asked = _asked(row)
        assert asked is not None
        (calls if row["expect"] else answers)[asked].append(_habit(row))
    return Rates(calls, answers, _asked_anew(rows))


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    texts = ((CASES / name).read_text("utf-8") for name in FILES)
    return tuple(json.loads(line) for text in texts for line in text.splitlines())


_FORMS = {"native": "native", "hermes": "hermes", "inline_json": "json", "lfm2": "pythonic"}


def _asked(row: Mapping[str, Any]) -> Asked | None:
    """How a row was asked; None for ways that the runner never takes (a router before, `tool_choice: required`)."""
    form = _FORMS[row["format"]]
    match row.get("mode"):
        case None | "auto" | "inline" | "lfm2":
            return Asked(form)
        case "auto_reply":
            return Asked(form, reply_tool=True)
        case "schema" | "native_schema":
            return Asked(form, schema=True)
        case "native_schema_rt":
            return Asked(form, reply_tool=True, schema=True)
        case "fewshot":
            return Asked(form, native_turns=True)
        case _:
            return None


def _habit(row: Mapping[str, Any]) -> Habit:
    call = row.get("call")
    # The dumps do not say what was called: there a spurious call is one of some tool.
    called = call[0] if call else ("" if "spurious_call" in row["labels"] else None)
    labels = frozenset(row["labels"])
    # A long reply that was cut off after its call did no harm.
    if call and not labels & (DAMAGING - {"hit_length_limit"}):
        labels -= {"hit_length_limit"}
    return Habit(labels, any(name in row["raw"] for name in row["tools"]), called)


def _asked_anew(rows: Iterable[Mapping[str, Any]]) -> float:
    """Over all pairs of rows of one prompt of which one is wrong: the share where the other is right."""
    by_prompt: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row["expect"] and row["format"] != "lfm2" and row.get("mode") != "fewshot":
            by_prompt[row["prompt_id"]].append(_habit(row).right)
    others = [
        right
        for rights in by_prompt.values()
        for place, wrong in enumerate(rights)
        if not wrong
        for other, right in enumerate(rights)
        if other != place
    ]
    return sum(others) / len(others)
