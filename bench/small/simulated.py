"""Q5, simulated: forty tasks through the whole runner with the simulated weak model, arm by arm and seed by seed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from bench.small.play import GUIDED, TEXT, Arm, Played, play
from bench.small.tasks import TASKS, Task
from bench.small.weak import WeakModel
from runner.small.part import Part

SEEDS: Final = tuple(range(1, 21))
AT_ONCE: Final = 12
"""Runs side by side: most of a run is waiting for its own pace."""


@dataclass(frozen=True, slots=True)
class Sums:
    """All tasks with one seed."""

    seed: int
    finished: int
    rounds: int
    tokens_in: int
    tokens_out: int
    shown: int
    failed: tuple[str, ...]

    @classmethod
    def of(cls, seed: int, played: Sequence[Played]) -> Sums:
        return cls(
            seed,
            sum(one.finished for one in played),
            sum(one.rounds for one in played),
            sum(one.tokens_in for one in played),
            sum(one.tokens_out for one in played),
            sum(one.shown for one in played),
            tuple(one.task for one in played if not one.finished),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """One arm with one model over all seeds."""

    model: str
    arm: str
    tasks: int
    sums: tuple[Sums, ...]

    @property
    def finished(self) -> tuple[float, int, int]:
        """Mean, least and most over the seeds."""
        counts = [one.finished for one in self.sums]
        return fmean(counts), min(counts), max(counts)

    def mean(self, measure: str) -> float:
        return fmean(getattr(one, measure) for one in self.sums)

    def cells(self) -> tuple[str, ...]:
        mean, least, most = self.finished
        return (
            self.arm,
            f"{mean:.1f} ({least}–{most})",
            f"{self.mean('rounds'):.0f}",
            f"{self.mean('tokens_in') / 1000:.0f}k",
            f"{self.mean('tokens_out') / 1000:.1f}k",
            f"{self.mean('shown'):.1f}",
        )

    def as_dict(self) -> dict[str, Any]:
        mean, least, most = self.finished
        return {
            "model": self.model,
            "arm": self.arm,
            "tasks": self.tasks,
            "finished": {"mean": round(mean, 2), "least": least, "most": most},
            **{name: round(self.mean(name), 1) for name in ("rounds", "tokens_in", "tokens_out", "shown")},
            "seeds": [{"seed": one.seed, "finished": one.finished, "failed": list(one.failed)} for one in self.sums],
        }


HEAD: Final = ("arm", "finished, mean (least–most)", "rounds", "tokens in", "tokens out", "markup shown")


async def outcome(arm: Arm, model: str, seeds: Sequence[int], tasks: Sequence[Task] = TASKS) -> Outcome:
    """Play an arm with every seed. Each task has a model of its own, so the order of runs changes nothing."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int, task: Task) -> Played:
        async with slots:
            return await play(task, arm, WeakModel(model, seed))

    sums = []
    for seed in seeds:
        sums.append(Sums.of(seed, await asyncio.gather(*(one(seed, task) for task in tasks))))
    return Outcome(model, arm.name, len(tasks), tuple(sums))


def left_out() -> Iterator[Arm]:
    """The text form with each part left out, and the guided form without what makes it."""
    yield TEXT
    yield from (TEXT.without(part) for part in Part if part is not Part.SCHEMA)
    yield GUIDED
    yield from (GUIDED.without(part) for part in (Part.SCHEMA, Part.REPLY_TOOL, Part.LENIENT_READING, Part.LADDER))
