"""`python -m tests.mutants [RULE …] [--sample N --seed S]`: make every fault, or some, and see its test fall.

Ends with 1 unless every fault is killed. The working tree is not touched.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.table import Copy, Mutant, Verdict, all_mutants, copied

AT_ONCE = 2


def chosen(rules: Sequence[str], sample: int | None, seed: int) -> tuple[Mutant, ...]:
    """The faults of some rules (all where none is named), or so many of them drawn by a seed."""
    wanted = tuple(one for one in all_mutants() if not rules or one.rule in rules)
    if sample is None or sample >= len(wanted):
        return wanted
    return tuple(random.Random(seed).sample(wanted, sample))


def judged(mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, Verdict]]:
    """What becomes of each fault, in their order; two are tried at a time, each in a copy of its own."""
    copies: SimpleQueue[Copy] = SimpleQueue()

    def judge(mutant: Mutant) -> Verdict:
        copy = copies.get()
        try:
            return copy.judge(mutant)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as threads:
        for number in range(AT_ONCE):
            copies.put(copied(Path(folder) / str(number)))
        yield from zip(mutants, threads.map(judge, mutants), strict=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="for example K4; every rule where none is named")
    parser.add_argument("--sample", type=int, help="so many faults, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    sys.stdout.write(f"seed {given.seed}\n")
    counts: Counter[Verdict] = Counter()
    for mutant, verdict in judged(chosen(given.rules, given.sample, given.seed)):
        counts[verdict] += 1
        sys.stdout.write(f"{verdict:10} {mutant.name} ({mutant.test})\n")
        sys.stdout.flush()
    sys.stdout.write(f"{', '.join(f'{count} {verdict}' for verdict, count in counts.items())}\n")
    return 0 if set(counts) == {Verdict.KILLED} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
