"""The table of sentences names real tests, each scenario plays twice, and none is left out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from runner.small.part import Part

from .table import SENTENCES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def named_in(path: Path) -> dict[str, str]:
    """The tests of a module with their source."""
    source = path.read_text(encoding="utf-8")
    found = (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_source_segment(source, node) or "" for node in found if node.name.startswith("test_")}


SCENARIOS = {
    name: source
    for path in sorted(HERE.glob("test_*.py"))
    if path != Path(__file__)
    for name, source in named_in(path).items()
}


@pytest.mark.parametrize("number", list(SENTENCES))
def test_each_sentence_has_scenarios_or_says_why_it_has_none(number: str) -> None:
    sentence = SENTENCES[number]
    assert bool(sentence.scenarios) != bool(sentence.none_because)
    assert set(sentence.scenarios) <= set(SCENARIOS)
    for place in sentence.elsewhere:
        path, _, name = place.partition("::")
        assert name in named_in(ROOT / path)


def test_each_scenario_belongs_to_a_sentence() -> None:
    named = {name for sentence in SENTENCES.values() for name in sentence.scenarios}
    assert set(SCENARIOS) - named == set()


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_each_scenario_is_played_with_and_without_its_part(name: str) -> None:
    assert "await shows(" in SCENARIOS[name]
    assert "wanted=" in SCENARIOS[name] and "without=" in SCENARIOS[name]


def test_each_part_of_the_small_profile_is_left_out_in_some_scenario() -> None:
    written = "\n".join(SCENARIOS.values())
    assert {part.name for part in Part} == {part.name for part in Part if f"shows(Part.{part.name}," in written}
