"""`python -m bench.small reading|simulated|real [options]`: how small models fare with this runner (quality Q5)."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.bringup import end_when_asked
from bench.small import play, reading, real, simulated
from bench.small.rates import MODELS
from bench.small.report import markdown
from bench.small.tasks import TASKS


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    report = {"reading": _reading, "simulated": _simulated, "real": _real}[asked.what](asked)
    _write(asked.json, report)
    return 0


def _write(file: Path | None, report: dict[str, Any]) -> None:
    if file is not None:
        file.write_text(json.dumps(report, indent=1, ensure_ascii=False), "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.small", description=__doc__)
    parser.add_argument("what", choices=("reading", "simulated", "real"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON as well")
    parser.add_argument(
        "--model", choices=MODELS, action="append", help="simulated and real: one model; both if left out"
    )
    parser.add_argument(
        "--arm", action="append", help="simulated and real: one arm by its name, several if given again"
    )
    parser.add_argument("--task", choices=[task.id for task in TASKS], action="append", help="one task by its id")
    parser.add_argument("--seeds", type=int, default=20, help="simulated: seeds 1 to this number")
    parser.add_argument("--left-out", action="store_true", help="simulated: each part left out, one by one")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="simulated: every N-th task only")
    parser.add_argument("--all-tasks", action="store_true", help="real: all forty tasks, not eight")
    parser.add_argument(
        "--public",
        type=Path,
        metavar="PYTHON",
        help="reading: the interpreter of an environment with "
        "requirements-bench.txt; the public readers are measured beside ours",
    )
    parser.add_argument("--least", type=int, default=1, help="reading: formats with fewer lines become one row")
    return parser


def _reading(asked: argparse.Namespace) -> dict[str, Any]:
    report = {}
    for title, lines in (("public cases", reading.public_lines()), ("raw replies", reading.raw_lines())):
        scores = reading.measure(list(lines), asked.public)
        print(f"\n{title}: replies read right, of those the reader has a parser for\n")
        print(reading.table(scores, least=asked.least))
        report[title] = reading.as_dict(scores)
    return report


def _simulated(asked: argparse.Namespace) -> dict[str, Any]:
    seeds = range(1, asked.seeds + 1)
    tasks = real.chosen(asked.task) if asked.task else TASKS[:: asked.every]
    outcomes = []
    for model in asked.model or MODELS:
        print(f"\nsimulated {model}, {len(tasks)} tasks, seeds {', '.join(map(str, seeds))}\n")
        rows = []
        for arm in _chosen(simulated.left_out() if asked.left_out else play.ARMS, asked.arm):
            outcomes.append(asyncio.run(simulated.outcome(arm, model, seeds, tasks)))
            rows.append(outcomes[-1].cells())
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
        print(markdown(simulated.HEAD, rows))
    return {"seeds": list(seeds), "outcomes": [one.as_dict() for one in outcomes]}


def _real(asked: argparse.Namespace) -> dict[str, Any]:
    every = [task.id for task in TASKS]
    tasks = real.chosen(asked.task or (every if asked.all_tasks else real.SUBSET))
    report: dict[str, Any] = {"tasks": [task.id for task in tasks]}
    for model in asked.model or MODELS:
        with real.engine(model) as base_url:
            print(f"\n{model} by llama.cpp, {len(tasks)} tasks\n")
            rows = []
            for arm in _chosen(simulated.left_out() if asked.left_out else real.ARMS, asked.arm):
                served = real.Served(base_url)
                played = asyncio.run(real.played(arm, served, tasks))
                report[f"{model} {arm.name}"] = [asdict(one) for one in played]
                rows.append(_real_cells(arm.name, played, served.seconds))
                print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
                _write(asked.json, report)  # an arm can take half an hour: none is lost
            print(markdown(_REAL_HEAD, rows))
    return report


_REAL_HEAD = ("arm", "finished", "rounds", "tokens in", "tokens out", "markup shown", "seconds")


def _real_cells(name: str, played: Sequence[play.Played], seconds: float) -> tuple[str, ...]:
    sums = simulated.Sums.of(0, played)
    counts = (sums.rounds, sums.tokens_in, sums.tokens_out, sums.shown)
    return (name, f"{sums.finished}/{len(played)}", *map(str, counts), f"{seconds:.0f}")


def _chosen(arms: Any, names: Sequence[str] | None) -> list[play.Arm]:
    there = list(arms)
    unknown = set(names or ()) - {arm.name for arm in there}
    if unknown:
        raise SystemExit(f"no such arm: {', '.join(sorted(unknown))}; there are {', '.join(arm.name for arm in there)}")
    return [arm for arm in there if not names or arm.name in names]


if __name__ == "__main__":
    end_when_asked()
    sys.exit(main())
