"""Q5: the parts that can be left out are told to owners, and leaving one out leaves the others."""

from __future__ import annotations

import re
from pathlib import Path

from runner.small.part import EVERY_PART, Part, all_but

PAGE = Path(__file__).parents[2] / "docs" / "small-models.md"


def test_Q5_every_part_stands_in_the_table_of_the_page_on_small_models() -> None:
    rows = re.findall(r"^\| S\d \|([^|]*)\|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {part.value for part in Part} <= {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}


def test_Q5_all_but_some_parts_is_every_other_part() -> None:
    assert all_but() == EVERY_PART == frozenset(Part)
    assert EVERY_PART - all_but(Part.LADDER, Part.WRAP_UP) == {Part.LADDER, Part.WRAP_UP}
