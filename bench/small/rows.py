"""Q5 among the other sections of `python -m bench`: ours is the guided form, bare the same loop in `standard`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.small.play import GUIDED, STANDARD
from bench.small.rates import MODELS
from bench.small.reading import OURS, Line, Tally, measure, public_lines, raw_lines
from bench.small.simulated import outcome
from bench.table import Row

SEEDS = (1, 2)
MAY_BE_MISREAD = 4
MAY_BE_INVENTED = 1
"""Lines that contradict another line or a rule; `tests/callformats/test_formats.py` names them with the reason."""


def rows() -> Iterator[Row]:
    yield from _reading("public cases", list(public_lines()), (MAY_BE_MISREAD, MAY_BE_INVENTED))
    yield from _reading("raw replies of 0.5B and 1.5B", list(raw_lines()), (None, 0))
    for model in MODELS:
        bare = asyncio.run(outcome(STANDARD, model, SEEDS))
        ours = asyncio.run(outcome(GUIDED, model, SEEDS))
        scene = f"simulated {model}, {ours.tasks} tasks, {len(SEEDS)} seeds"
        yield Row("Q5", scene, "tasks finished", bare.finished[0], ours.finished[0])
        for name in ("rounds", "tokens_in", "tokens_out"):
            yield Row("Q5", scene, name.replace("_", " "), bare.mean(name), ours.mean(name))
        yield Row("Q5", scene, "markup shown", bare.mean("shown"), ours.mean("shown"), 0)


def _reading(scene: str, lines: list[Line], limits: tuple[int | None, int]) -> Iterator[Row]:
    total = Tally()
    for each in measure(lines).by_reader[OURS].values():
        total.lines += each.lines
        total.right += each.right
        total.invented += each.invented
    yield Row("Q5", f"{scene}, {total.lines}", "not read right", None, total.lines - total.right, limits[0])
    yield Row("Q5", f"{scene}, {total.lines}", "calls invented", None, total.invented, limits[1])
