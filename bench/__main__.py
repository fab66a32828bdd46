"""`python -m bench [--only q1|q2|q3|g1] [--json FILE]`: ours beside the pass-through runner, in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import calls, chats, cost, window
from bench.machine import machine
from bench.table import Row, text_of

SECTIONS: dict[str, Callable[[], Iterator[Row]]] = {
    "q1": calls.rows,
    "q2": cost.rows,
    "q3": chats.rows,
    "g1": window.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, action="append", help="one section, several if given again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON as well")
    asked = parser.parse_args()
    before, measured = machine(), []
    for name in asked.only or SECTIONS:
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
