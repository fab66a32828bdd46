"""What is known of each model of a conversation: whether it needs the small policy, and which form it writes (S1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from config.choices import CallFormat
from runner.host.events import Json

KEY: Final = "small-models"
"""Name among the notes of the conversation's checkpoint."""

_MOST = 16


@dataclass(frozen=True, slots=True)
class Known:
    """One model. `form` None: it has not written a call as text; else the form nearest to what it wrote."""

    small: bool = False
    form: CallFormat | None = None


class Memory:
    """Reads what earlier runs noted and notes what this one learns. `note` keeps a value with the conversation."""

    def __init__(self, stored: Json, note: Callable[[Json], None]) -> None:
        self._known = dict(_read(stored))
        self._note = note

    def of(self, model_id: str) -> Known:
        return self._known.get(model_id, Known())

    def learn(self, model_id: str, known: Known) -> None:
        """Remember it; costs nothing when it is no news."""
        if self.of(model_id) == known:
            return
        self._known[model_id] = known
        kept = list(self._known.items())[-_MOST:]
        self._note({name: _written(each) for name, each in kept})


def _written(known: Known) -> dict[str, Json]:
    return {"small": known.small, "form": known.form.value if known.form else None}


def _read(stored: Json) -> Mapping[str, Known]:
    """A stored value of any shape: what is not ours is ignored."""
    if not isinstance(stored, dict):
        return {}
    known: dict[str, Known] = {}
    for name, each in list(stored.items())[:_MOST]:
        if isinstance(each, dict):
            form = each.get("form")
            known[name] = Known(each.get("small") is True, CallFormat(form) if form in set(CallFormat) else None)
    return known
