"""The picture of the bench: the rows of a report are in it, with their numbers, whatever they are called."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.plot import main, rows_of, svg_of
from bench.table import Row

ROWS = [
    Row("Q1", "one answer", "calls", 4, 6, 6),
    Row("Q1", "one <b> & more", "MB out", None, 0.25),
    Row("Q2", "crowd", "peak memory", 100, 600, 512, "MiB"),
    Row("Q3", "nothing at all", "lost", 0, 0, 0),
]
SVG = "{http://www.w3.org/2000/svg}"


def words_of(picture: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(picture).iter(f"{SVG}text")]


def report(path: Path, rows: object) -> Path:
    about = {"cores": 2, "load": [0.1, 0.2, 0.3], "python": "3.11.7"}
    path.write_text(json.dumps({"before": about, "after": about, "rows": rows}), "utf-8")
    return path


def test_every_row_is_drawn_with_its_numbers(tmp_path: Path) -> None:
    source, picture = report(tmp_path / "report.json", [row.as_dict() for row in ROWS]), tmp_path / "deep" / "a.svg"
    assert main([str(source), str(picture), "--all"]) == 0
    words = words_of(picture)
    for row in ROWS:
        assert any(f"{row.scenario}: {row.measure}" in text for text in words)
    for told in ("4 / 6 ≤ 6", "– / 0.250", "100 / 600 ≤ 512", "0 / 0 ≤ 0", "2 cores, load 0.1, Python 3.11.7"):
        assert told in words
    assert [text[:2] for text in words if text.startswith("Q")] == ["Q1", "Q2", "Q3"]


def test_rows_without_a_limit_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    source, picture = report(tmp_path / "report.json", [row.as_dict() for row in ROWS]), tmp_path / "a.svg"
    assert main([str(source), str(picture)]) == 0
    words = words_of(picture)
    assert [row.scenario for row in ROWS if any(row.scenario in text for text in words)] == [
        row.scenario for row in ROWS if row.limit is not None
    ]


def test_no_bar_is_wider_than_its_place_and_what_is_above_its_limit_has_another_colour() -> None:
    bars = list(ElementTree.fromstring(svg_of(ROWS)).iter(f"{SVG}rect"))
    drawn = [bar for bar in bars if bar.get("height") == "9"]
    assert len(drawn) == 2 + 1 + 2 + 2
    assert all(1 <= float(bar.get("width", "0")) <= 420 for bar in drawn)
    assert [bar.get("fill") for bar in drawn].count("#d64545") == 1


def test_a_report_reads_back_as_its_rows() -> None:
    assert rows_of({"rows": [row.as_dict() for row in ROWS]}) == ROWS


@pytest.mark.parametrize("text", ["", "{}", '{"rows": [{}]}', "[]"])
def test_what_is_no_report_is_said_and_draws_nothing(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, picture = tmp_path / "report.json", tmp_path / "a.svg"
    source.write_text(text, "utf-8")
    assert main([str(source), str(picture)]) == 2
    assert not picture.exists()
    assert "no report" in capsys.readouterr().err
