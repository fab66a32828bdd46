"""What is tried when a model refuses a request: one change after the other, each once for a model and run (K7).

A provider's reason does not reach the runner, and the Host does not tell which model takes tools or pictures. So a
refused request is changed step by step, in the order of `Step`, until the model takes it:

```
asked ─▸ refused ─▸ the next step that changes this request ─▸ asked again … at most five requests ─▸ the next model
  ▲                                                                    └─▸ taken: the step is remembered
  └─ the next run begins with the steps that helped, for a day
```
Pure: `Turns` asks, and others make the changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from runner.conversation.request import Request
from runner.conversation.units import AssistantTurn, Image, Unit
from runner.host.errors import ModelTrouble
from runner.host.events import Json
from runner.models.habits import Habits


class Step(StrEnum):
    """What can be left out of a request or changed in it, in the order in which it is tried.

    The value is what stands in the log and, with what is known of a model, in the conversation's state.
    """

    LEVEL = "reasoning level"
    FORCING = "forced form"  # a schema for the reply, `tool_choice`, a temperature
    PICTURES = "pictures"
    SCHEMAS = "changed schemas"
    TOOLS = "tools"  # calls in the history become words with them
    TOOL_TURNS = "calls in the history"
    SIZE = "size"  # a tighter budget; what was tried before is given back


CHANGED: Final = {
    Step.LEVEL: "without its reasoning level",
    Step.FORCING: "without a forced form",
    Step.PICTURES: "without pictures",
    Step.SCHEMAS: "with the plainest schemas",
    Step.TOOLS: "without tools",
    Step.TOOL_TURNS: "with earlier calls as words",
    Step.SIZE: "with a smaller request",
}
"""How a request is sent then, for the log."""

MOST_REQUESTS: Final = 5
"""So many refused requests, and the next model is asked."""

REMEMBERED: Final = 24 * 60 * 60.0
"""Seconds for which a step that helped is the start of later runs; then the whole request is tried anew."""

_FORCING: Final = frozenset({"tool_choice", "response_format", "temperature"})
_ANY_STEP: Final = frozenset(Step)
_MAY_HELP: Final = {ModelTrouble.REASONING_REFUSED: frozenset({Step.LEVEL}), ModelTrouble.BAD_REQUEST: _ANY_STEP}
_CERTAINLY_REFUSED: Final = frozenset({ModelTrouble.REASONING_REFUSED, ModelTrouble.BAD_REQUEST})
"""Any other failure may have passed by itself while the request was changed."""

_MAYBE: Final = "?"
"""Behind the name of a step that seemed to help against such a failure: it counts when it does so again."""


def steps_against(trouble: ModelTrouble, *, is_last: bool) -> frozenset[Step]:
    """The steps that may help against a failure; none where a request was not refused, as with a time-out.

    An error without any reason is a server in trouble more often than a refusal: the next model is the better step
    then, and these are for the last one (`is_last`).
    """
    if trouble is ModelTrouble.OTHER and is_last:
        return _ANY_STEP
    return _MAY_HELP.get(trouble, frozenset())


def steps_in(request: Request) -> frozenset[Step]:
    """The steps that would change this request; the level and the size are none of its own."""
    has = {
        Step.FORCING: bool(_FORCING & request.extra.keys()),
        Step.PICTURES: any(isinstance(part, Image) for part in request.system.parts) or any(map(_shows, request.units)),
        Step.SCHEMAS: any(tool.altered for tool in request.tools),
        Step.TOOLS: bool(request.tools),
        Step.TOOL_TURNS: any(isinstance(unit, AssistantTurn) and unit.calls for unit in request.units),
    }
    return frozenset(step for step, found in has.items() if found)


def _shows(unit: Unit) -> bool:
    return not isinstance(unit, AssistantTurn) and any(isinstance(part, Image) for part in unit.parts)


@dataclass(slots=True)
class _Tries:
    """One model in one run. `start`: what helped in earlier runs; `now`: what is changed besides, the newest last."""

    start: frozenset[Step]
    now: list[Step] = field(default_factory=list)
    made: set[Step] = field(default_factory=set)
    refused: int = 0
    certain: bool = False
    with_turns: bool = False


class Refusals:
    """The models of one run. Each has steps of its own: what one refused the next one gets whole.

    `habits` gives what earlier runs noted, `now` epoch seconds. `steps`: those that there are at all.
    """

    def __init__(
        self,
        habits: Callable[[], Habits] | None = None,
        now: Callable[[], float] = time.time,
        steps: Collection[Step] = _ANY_STEP,
    ) -> None:
        nothing_known = Habits(None, _kept_nowhere)
        self._habits = habits or (lambda: nothing_known)
        self._now = now
        self._steps = frozenset(steps)
        self._models: dict[str, _Tries] = {}

    def without(self, model_id: str) -> frozenset[Step]:
        """The steps that shape this model's next request."""
        tries = self._tries(model_id)
        return tries.start.union(tries.now)

    def remembered(self, model_id: str) -> frozenset[Step]:
        """Those of them that an earlier run found."""
        return self._tries(model_id).start

    def next(self, model_id: str, trouble: ModelTrouble, possible: Collection[Step]) -> Step | None:
        """The model refused a request that `possible` steps would change: the one to take now, None for none."""
        tries = self._tries(model_id)
        tries.refused += 1
        # Near the budget, what is left out may help only since the request is smaller without it.
        tries.certain = trouble in _CERTAINLY_REFUSED and Step.SIZE not in possible
        free = self._steps & set(possible) - tries.start - tries.made
        step = next((step for step in Step if step in free), None)
        tries.with_turns = Step.TOOL_TURNS in possible
        if step is None or tries.refused >= MOST_REQUESTS:
            return None
        tries.made.add(step)
        if step is Step.SIZE:
            tries.now.clear()  # it did not help; a request that is only too large keeps its tools and pictures
        else:
            tries.now.append(step)
        return step

    def took(self, model_id: str) -> None:
        """The model took a request: the last step helped, and it stays for the run, with those before it.

        Where calls became words together with the tools, the words alone are what the next run tries: it keeps tools.
        """
        tries = self._tries(model_id)
        if not tries.now:
            return
        helped, tries.start, tries.now = tries.now[-1], tries.start.union(tries.now), []
        if helped is Step.TOOLS and tries.with_turns:
            helped = Step.TOOL_TURNS
        certain = tries.certain or helped.value + _MAYBE in self._recent(model_id)
        self._remember(model_id, helped.value if certain else helped.value + _MAYBE)

    def _remember(self, model_id: str, name: str) -> None:
        habit = self._habits().of(model_id)
        known = {other: when for other, when in habit.helped.items() if other != name}
        self._habits().learn(model_id, replace(habit, helped={**known, name: self._now()}))

    def _recent(self, model_id: str) -> frozenset[str]:
        helped = self._habits().of(model_id).helped
        return frozenset(name for name, when in helped.items() if 0 <= self._now() - when < REMEMBERED)

    def _tries(self, model_id: str) -> _Tries:
        if model_id not in self._models:
            recent = self._recent(model_id)
            self._models[model_id] = _Tries(frozenset(step for step in self._steps if step.value in recent))
        return self._models[model_id]


def _kept_nowhere(_value: Json) -> None:
    """Without a conversation nothing outlives the run."""
