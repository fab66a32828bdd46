"""`python -m tests.faults`: the whole matrix. `--sample N [--seed N]`: so many of its cases; `--case NAME`: one again.

Exit code 1: something did not hold; each finding names its case.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from random import SystemRandom

from .matrix import Case, Report, all_cases, play, sample


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="so many cases instead of all")
    parser.add_argument("--seed", type=int, help="which ones; a random choice otherwise")
    parser.add_argument("--case", metavar="NAME", help="play the cases whose name contains this")
    asked = parser.parse_args()
    logging.disable()  # the SDK tells of each of these faults at length
    report = Report()
    for case in _chosen(asked):
        before = len(report.findings)
        play(case, report)
        for finding in report.findings[before:]:
            print(finding, file=sys.stderr, flush=True)  # noqa: T201 - a command
    print(report.text)  # noqa: T201 - a command
    return 1 if report.findings else 0


def _chosen(asked: argparse.Namespace) -> Sequence[Case]:
    if asked.case is not None:
        return [case for case in all_cases() if asked.case in str(case)]
    if asked.sample is None:
        return list(all_cases())
    seed = SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - a command
    return sample(seed, asked.sample)


if __name__ == "__main__":
    sys.exit(main())
