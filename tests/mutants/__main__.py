"""`python -m tests.mutants [RULE …] [--sample N --seed S]`: make every fault, or some, and see its test fall.

Ends with 1 when a fault survives. A whole run takes about a quarter of an hour; the working tree is not touched.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.judge import Verdict, copied
from tests.mutants.table import Mutant, all_mutants


def chosen(rules: Sequence[str], sample: int | None, seed: int) -> tuple[Mutant, ...]:
    """The faults of some rules (all where none is named), or so many of them drawn by a seed."""
    wanted = tuple(one for one in all_mutants() if not rules or one.rule in rules)
    if sample is None or sample >= len(wanted):
        return wanted
    return tuple(random.Random(seed).sample(wanted, sample))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="for example K4; every rule where none is named")
    parser.add_argument("--sample", type=int, help="so many faults, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    counts: Counter[Verdict] = Counter()
    with tempfile.TemporaryDirectory() as folder, copied(Path(folder)) as copy:
        for mutant in chosen(given.rules, given.sample, given.seed):
            verdict = copy.judge(mutant)
            counts[verdict] += 1
            sys.stdout.write(f"{verdict:10} {mutant.name} ({mutant.test})\n")
            sys.stdout.flush()
    sys.stdout.write(f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}\n")
    return 0 if set(counts) == {Verdict.KILLED} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
