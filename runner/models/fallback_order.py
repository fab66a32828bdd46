"""Which models a run may use, in which order, and which one is answering (C1, C3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel
from langbot_plugin.api.entities.builtin.runner.resources import ModelResource

from runner.host.errors import AllModelsFailed, ModelFailed, NoUsableModel

_ALL_OPERATIONS = frozenset({"invoke", "stream", "rerank", "count_tokens"})
_LEVELS = frozenset(get_args(ReasoningLevel))


@dataclass(frozen=True, slots=True)
class ModelRef:
    """One authorised model. `level` None means the model's own reasoning setting."""

    id: str
    level: ReasoningLevel | None
    operations: frozenset[str]

    @property
    def streams(self) -> bool:
        return "stream" in self.operations


def authorised(
    wanted: Iterable[str], reasoning: Mapping[str, str], granted: Sequence[ModelResource]
) -> tuple[ModelRef, ...]:
    """The wanted models that this run may ask for answers, in the wanted order, each once.

    An empty list of operations means all of them. Raises NoUsableModel when nothing is left.
    """
    grants = {model.model_id: frozenset(model.operations) or _ALL_OPERATIONS for model in granted}
    ids = dict.fromkeys(model_id for model_id in wanted if model_id)
    usable = tuple(
        ModelRef(model_id, _level(reasoning.get(model_id)), grants[model_id])
        for model_id in ids
        if grants.get(model_id, frozenset()) & {"invoke", "stream"}
    )
    if usable:
        return usable
    if not ids:
        raise NoUsableModel("no model is chosen: choose a primary model in the pipeline's AI tab.")
    raise NoUsableModel(
        f"none of the {len(ids)} chosen models is available to this run (deleted, or not granted): "
        "choose another primary model in the pipeline's AI tab."
    )


def _level(value: str | None) -> ReasoningLevel | None:
    """An unknown level is no level: a stale map must not break every turn."""
    return cast(ReasoningLevel, value) if value in _LEVELS else None


class Lineup:
    """The models of one run. The one that answers stays; one that failed is not asked again."""

    def __init__(self, models: tuple[ModelRef, ...]) -> None:
        self.models = models
        self._place = 0
        self._failures: list[ModelFailed] = []

    @property
    def current(self) -> ModelRef:
        return self.models[self._place]

    @property
    def left(self) -> tuple[ModelRef, ...]:
        """The answering model and the fallbacks behind it."""
        return self.models[self._place :]

    @property
    def is_last(self) -> bool:
        return self._place + 1 == len(self.models)

    @property
    def fallbacks_used(self) -> int:
        return self._place

    def advance(self, failure: ModelFailed) -> None:
        """Go on to the next model. Raises AllModelsFailed when there is none."""
        self._failures.append(failure)
        if self.is_last:
            raise AllModelsFailed(tuple(self._failures)) from failure
        self._place += 1
