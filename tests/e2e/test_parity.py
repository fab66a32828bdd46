"""The same scenarios on the test host and in the real LangBot: a difference fails, whoever is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo import package
from tests.e2e import playing
from tests.e2e.bed import Bed
from tests.host import probe
from tests.host.scenario import Scenario, differences
from tests.host.seen import contrast
from tests.host_checks.test_scenarios import SCENARIOS, seen_here

pytestmark = pytest.mark.usefixtures("ours")

KNOWN: dict[str, str] = {
    r".*/usage/completion_tokens_details.*": "LiteLLM splits the usage it is told into kinds of tokens",
    r".*/tools/\d+/(description|parameters/properties/\w+/description)": "the words of LangBot's own tools",
    r".*/reply_target/message_id": "messages of the web page have no number",
}
"""Paths where the two may differ, with the reason."""


@pytest.fixture(scope="module")
def probe_runner(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LangBot's id of the probe, with its tools offered to every pipeline of this module."""
    who = package.identity(probe.PLUGIN)
    bed.langbot.api.install(package.build(probe.PLUGIN, tmp_path_factory.mktemp("probe")))
    yield bed.langbot.api.wait_for_runner(who.author, who.name)
    bed.langbot.api.uninstall(who.author, who.name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_both_hosts_tell_the_same_of(bed: Bed, probe_runner: str, scenario: Scenario) -> None:
    outcomes, there = await playing.witness(bed, scenario, probe_runner if scenario.probe else bed.runner_id)
    expected, here = await seen_here(scenario)
    assert differences(scenario, outcomes, [(row.role, row.text) for row in there.rows]) == expected == []
    assert contrast(here, there, KNOWN) == []
