"""What earlier replies of a conversation showed of each model, kept with the conversation (K2, K7, K8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from runner.host.events import Json

KEY: Final = "models"
"""Name among the notes of the conversation's checkpoint."""

_MOST_MODELS: Final = 16
_MOST_STEPS: Final = 16


@dataclass(frozen=True, slots=True)
class Habit:
    """One model.

    `numbered_ids`: it writes ids of calls as `functions.NAME:N` and wants to read that form back (K2). `slow_start`: a
    reply of it has begun late, and it was at work all the same (K8). `helped`: what had to be changed in a request
    before the model took it, by the name of the change, with the time at which it helped (epoch seconds, K7). `thinks`:
    its thoughts come apart from its text, and it may refuse calls that it reads without one (C2).
    """

    numbered_ids: bool = False
    slow_start: bool = False
    helped: Mapping[str, float] = field(default_factory=dict)
    thinks: bool = False


class Habits:
    """Reads what earlier runs noted and notes what this one sees. `note` keeps a value with the conversation."""

    def __init__(self, stored: Json, note: Callable[[Json], None]) -> None:
        self._known = dict(_read(stored))
        self._note = note

    def of(self, model_id: str) -> Habit:
        """What is known of a model; for one never seen, nothing."""
        return self._known.get(model_id, Habit())

    def learn(self, model_id: str, habit: Habit) -> None:
        """Remember it; costs nothing when it is no news."""
        if self.of(model_id) == habit:
            return
        self._known.pop(model_id, None)  # the newest stands last, and the oldest gives way
        self._known[model_id] = replace(habit, helped=dict(list(habit.helped.items())[-_MOST_STEPS:]))
        self._known = dict(list(self._known.items())[-_MOST_MODELS:])
        self._note({name: _written(each) for name, each in self._known.items()})


def _written(habit: Habit) -> dict[str, Json]:
    return {
        "numbered_ids": habit.numbered_ids,
        "slow_start": habit.slow_start,
        "helped": dict(habit.helped),
        "thinks": habit.thinks,
    }


def _read(stored: Json) -> Mapping[str, Habit]:
    """A stored value of any shape: what is not ours is ignored."""
    if not isinstance(stored, dict):
        return {}
    return {
        name: Habit(
            each.get("numbered_ids") is True,
            each.get("slow_start") is True,
            _times(each.get("helped")),
            each.get("thinks") is True,
        )
        for name, each in list(stored.items())[-_MOST_MODELS:]
        if isinstance(each, dict)
    }


def _times(stored: Json) -> dict[str, float]:
    if not isinstance(stored, dict):
        return {}
    return {
        name: float(time)
        for name, time in list(stored.items())[-_MOST_STEPS:]
        if isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time)
    }
