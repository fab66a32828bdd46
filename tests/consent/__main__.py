"""`python -m tests.consent`: the fault table of consent, with the number of times the tool ran in each cell.

Exit code 1: a cell came out otherwise than it has to.
"""

from __future__ import annotations

import logging
import sys

from tests.host.steered import run_steered

from .table import FAULTS, STEPS, TABLE, play


def main() -> int:
    logging.disable()  # the SDK tells of each of these faults at length
    wrong = 0
    print("step       " + "".join(f"{fault:>12}" for fault in FAULTS))  # noqa: T201 - a command
    for step in STEPS:
        found = {fault: run_steered(play(step, fault)) for fault in FAULTS if (step, fault) in TABLE}
        wrong += sum(ran != expected for ran, expected in found.values())
        shown = (f"{ran}" if ran == expected else f"{ran}, not {expected}" for ran, expected in found.values())
        print(f"{step:<11}" + "".join(f"{each:>12}" for each in shown))  # noqa: T201 - a command
    print("never more than once, never without consent" if not wrong else f"{wrong} cells are wrong")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
