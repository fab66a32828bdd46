"""The scenarios of tests/scenarios on the test host: the real LangBot plays the same file in tests/e2e."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.runner.default import DefaultRunner
from tests.host import manifest_of, probe
from tests.host.scenario import Scenario, differences, load, witness
from tests.host.seen import Seen, contrast

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = load(ROOT / "tests" / "scenarios" / "parity.json")


async def seen_here(scenario: Scenario) -> tuple[list[str], Seen]:
    """Differences from what is expected, and all that was seen."""
    runner = probe.runner() if scenario.probe else DefaultRunner()
    manifest = probe.manifest() if scenario.probe else manifest_of(ROOT / "components" / "runner" / "default.yaml")
    outcomes, seen = await witness(scenario, runner, manifest, probe.tools())
    return differences(scenario, outcomes, [(row.role, row.text) for row in seen.rows]), seen


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_each_scenario_comes_out_as_written_down(scenario: Scenario) -> None:
    found, seen = await seen_here(scenario)
    assert found == []
    assert contrast(seen, seen, {}) == []
