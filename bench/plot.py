"""`python -m bench.plot REPORT.json OUT.svg`: a report as a picture, ours beside the pass-through runner.

The rows that have a limit are drawn, or all with `--all`. Each is one line: a bar for the bare runner, one for ours,
and a mark where the limit is, all as shares of the largest of the three, so that calls, seconds and megabytes stand in
one picture; the numbers stand beside the bars.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.table import Row, number

WIDTH, LINE, BAR = 1180, 30, 9
_LEFT, _RIGHT = 560, 200
_SPACE = WIDTH - _LEFT - _RIGHT
_COLOURS = {"bare": "#9aa4b2", "ours": "#2f6fdb", "over": "#d64545", "limit": "#111827", "text": "#1f2937"}
_MOST_LETTERS = 84
_HEADINGS = {
    "Q1": "Q1: calls to LangBot, counted",
    "Q2": "Q2: cost inside the plugin",
    "Q3": "Q3: through the real LangBot",
}


def rows_of(report: Mapping[str, Any]) -> list[Row]:
    """The rows of a report. Raises KeyError, TypeError for one that is none."""
    names = ("section", "scenario", "measure", "bare", "ours", "limit", "unit")
    return [Row(**{name: row[name] for name in names}) for row in report["rows"]]


def svg_of(rows: Sequence[Row], about: str = "") -> str:
    """The picture as SVG text; rows keep their order, grouped by section."""
    y, body = 64, []
    for section, group in groupby(rows, key=lambda row: row.section):
        body.append(_text(24, y + 18, _HEADINGS.get(section, section), size=16, bold=True))
        y += LINE
        for row in group:
            body.append(_line(row, y))
            y += LINE
        y += 10
    height = y + 20
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans, Arial, sans-serif">',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            _legend(about),
            *body,
            "</svg>\n",
        ]
    )


def _legend(about: str) -> str:
    parts = []
    for x, key, words in (
        (24, "bare", "pass-through runner"),
        (214, "ours", "LocalAgent"),
        (334, "over", "above limit"),
    ):
        parts.append(f'<rect x="{x}" y="20" width="12" height="12" fill="{_COLOURS[key]}"/>{_text(x + 18, 31, words)}')
    parts.append(f'<rect x="458" y="16" width="2" height="20" fill="{_COLOURS["limit"]}"/>{_text(468, 31, "limit")}')
    return "".join(parts) + _text(540, 31, about)


def _line(row: Row, y: int) -> str:
    largest = max(row.bare or 0.0, row.ours, row.limit or 0.0) or 1.0
    label = f"{row.scenario}: {row.measure}" + (f" ({row.unit})" if row.unit else "")
    colour = _COLOURS["over" if row.holds is False else "ours"]
    parts = [_text(_LEFT - 12, y + 16, _short(label), end=True)]
    if row.bare is not None:
        parts.append(_bar(row.bare / largest, y + 2, _COLOURS["bare"]))
    parts.append(_bar(row.ours / largest, y + 3 + BAR, colour))
    if row.limit is not None:
        x = _LEFT + row.limit / largest * _SPACE
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="2" height="{2 * BAR + 5}" fill="{_COLOURS["limit"]}"/>')
    told = f"{number(row.bare)} / {number(row.ours)}" + ("" if row.limit is None else f" ≤ {number(row.limit)}")
    parts.append(_text(_LEFT + _SPACE + 14, y + 16, told))
    return "".join(parts)


def _bar(share: float, y: int, colour: str) -> str:
    width = max(1.0, max(0.0, share) * _SPACE)
    return f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, *, size: int = 12, bold: bool = False, end: bool = False) -> str:
    more = (' font-weight="bold"' if bold else "") + (' text-anchor="end"' if end else "")
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{_COLOURS["text"]}"{more}>{escape(words)}</text>'


def _short(words: str) -> str:
    return words if len(words) <= _MOST_LETTERS else words[: _MOST_LETTERS - 1] + "…"


def about_of(report: Mapping[str, Any]) -> str:
    """What the numbers depend on, in one line."""
    before = report.get("before") or {}
    facts = (
        f"{before.get('cores')} cores",
        f"load {(before.get('load') or ['?'])[0]}",
        f"Python {before.get('python')}",
    )
    return ", ".join(facts) if before else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw. Exit code 2: the report cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m bench.plot", description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--all", action="store_true", help="rows without a limit too")
    asked = parser.parse_args(arguments)
    try:
        report = json.loads(asked.report.read_text("utf-8"))
        rows = [row for row in rows_of(report) if asked.all or row.limit is not None]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"no report of the bench: {asked.report} ({type(error).__name__}: {error})", file=sys.stderr)
        return 2
    asked.picture.parent.mkdir(parents=True, exist_ok=True)
    asked.picture.write_text(svg_of(rows, about_of(report)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
