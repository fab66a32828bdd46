"""Each rule has a test that falls when it is broken: all faults can be made, and a few, drawn by the seed, are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.__main__ import chosen
from tests.mutants.judge import Verdict, copied
from tests.mutants.table import ROOT, Mutant, all_mutants
from tests.seeds import SEED

SAMPLE = 4
"""A fault takes a run of pytest of its own; the whole table is for `python -m tests.mutants`."""

every_mutant = pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)


@every_mutant
def test_each_fault_can_be_made_and_names_a_test_of_its_rule(mutant: Mutant) -> None:
    mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
    file, _, name = mutant.test.partition("::")
    names = {
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in names
    assert f"_{mutant.rule}_" in name


@pytest.mark.parametrize("mutant", chosen((), SAMPLE, SEED), ids=lambda mutant: mutant.name)
def test_a_fault_makes_its_test_fall(mutant: Mutant, tmp_path: Path) -> None:
    with copied(tmp_path) as copy:
        assert copy.judge(mutant) is Verdict.KILLED
