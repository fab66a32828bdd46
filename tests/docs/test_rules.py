"""The page of rules names modules and tests that exist, and the test that falls for each fault of `tests.mutants`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.tables import ROOT
from tests.mutants.table import all_mutants

RULES = ROOT / "docs" / "rules.md"
TRIED_UNDER_ANOTHER_NAME = frozenset({"D8"})
"""Rules whose tests do not begin with their name: the module of the tests says which rule it tries."""


@cache
def entries() -> dict[str, str]:
    """What stands under each rule, by its name: `K4` → its text and the list behind it."""
    found = re.split(r"^\*\*([A-Z](?:\d+|[a-z]))\. ", RULES.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def is_built(entry: str) -> bool:
    return "*Not built yet.*" not in entry


BUILT = [rule for rule, entry in entries().items() if is_built(entry)]


def test_the_page_of_rules_has_every_letter() -> None:
    assert {rule[0] for rule in entries()} == set("ABCDEFGHIJKLMNQS")
    assert len(BUILT) > 80


def test_every_rule_that_a_test_cites_stands_on_the_page() -> None:
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    tested = {rule for text in texts for rule in re.findall(r"def test_([A-Z](?:\d+|[a-m]))_", text)}
    assert sorted(tested - entries().keys()) == []


@pytest.mark.parametrize("rule", BUILT)
def test_every_rule_that_is_built_names_what_keeps_and_what_tries_it(rule: str) -> None:
    entry = entries()[rule]
    assert re.search(r"^- Tried by ", entry, flags=re.MULTILINE)
    tried = entry.partition("- Tried by ")[2]
    places = [ROOT / place for place in re.findall(r"`(tests/[^`:]+)`", tried)]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py"))]
    said = "".join(file.read_text("utf-8") for file in files)
    assert not places or f"def test_{rule}_" in said or (rule in TRIED_UNDER_ANOTHER_NAME and rule in said)


@pytest.mark.parametrize("rule", sorted({mutant.rule for mutant in all_mutants()}))
def test_every_fault_that_is_made_names_its_test_under_its_rule(rule: str) -> None:
    tests = {mutant.test.rpartition("::")[2] for mutant in all_mutants() if mutant.rule == rule}
    assert {test for test in tests if f"`{test}`" not in entries()[rule]} == set()


def test_the_page_of_rules_is_what_stands_in_the_repository() -> None:
    named = re.findall(r"`((?:runner|callformats|config|tests|local|demo)/[\w./-]+)`", RULES.read_text("utf-8"))
    assert [path for path in named if not (Path(ROOT) / path).exists()] == []
