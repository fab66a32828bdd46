"""Every fault of the tables can be made, and a sample of them is noticed by the test that is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mutants.__main__ import chosen
from tests.mutants.table import ROOT, Mutant, Verdict, all_mutants, copied
from tests.seeds import SEED

SAMPLE = 4
"""Faults tried in each run of the tests; the whole is `python -m tests.mutants`."""

every_mutant = pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)


@every_mutant
def test_every_fault_can_be_made(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert mutant.applied(text) != text


@every_mutant
def test_the_test_of_every_fault_exists(mutant: Mutant) -> None:
    file, *_, name = mutant.test.split("::")
    assert re.search(rf"^\s*(?:async )?def {name}\(", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE)


def test_no_two_faults_have_one_name() -> None:
    names = [mutant.name for mutant in all_mutants()]
    assert len(names) == len(set(names))


def test_a_text_that_does_not_stand_once_is_refused() -> None:
    mutant = Mutant("A1", "nothing", "a.py", "x", "y", "tests/a.py::test_a")
    for text in ("", "x x"):
        with pytest.raises(ValueError, match="not once"):
            mutant.applied(text)


def test_a_sample_of_the_faults_is_noticed(tmp_path: Path) -> None:
    copy = copied(tmp_path / "copy")
    verdicts = {mutant.name: copy.judge(mutant) for mutant in chosen((), SAMPLE, SEED)}
    assert set(verdicts.values()) == {Verdict.KILLED}, f"seed {SEED}: {verdicts}"
