"""`python -m bench [--only SECTION …] [--json FILE]`: ours beside the pass-through runner, in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import calls, chats, context, cost, idle, last_words, prefix, tasks, window
from bench.bringup import end_when_asked
from bench.machine import machine
from bench.small import rows as small
from bench.table import Row, text_of

SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "q1": calls.rows,
    "q2": cost.rows,
    "q3": chats.rows,
    "context": context.rows,
    "l8": prefix.rows,
    "l11": idle.rows,
    "l13": last_words.rows,
    "g1": window.rows,
    "q5": small.rows,
    "tasks": tasks.rows,
}
DEFAULT = ("q1", "q2", "q3", "g1", "context", "l8", "l11", "l13")
"""What is measured when nothing else is asked for: everything that needs no real model."""


def main() -> int:
    end_when_asked()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only",
        choices=SECTIONS,
        action="append",
        help="one section, several if given again (without it: all that need no real model)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON as well")
    asked = parser.parse_args()
    before, measured = machine(), []
    for name in asked.only or DEFAULT:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        for row in SECTIONS[name]():
            measured.append(row)
            print(text_of([row], head=False), file=sys.stderr, flush=True)
    after = machine()
    print(text_of(measured))
    print(f"\nbefore: {before}\nafter:  {after}")
    if asked.json:
        report = {"before": before, "after": after, "rows": [row.as_dict() for row in measured]}
        asked.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
