"""A crowd at one bot; a worker that dies; a plugin that is replaced by a newer package; all in the running LangBot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.bed import Bed
from tests.e2e.crowd import CONFIG, Crowd, CrowdPlatform, people
from tests.e2e.group import group_bot
from tests.e2e.scripted_model import ScriptedModel
from tests.e2e.toolbox import plugin_installed
from tests.e2e.worker import worker_of

pytestmark = pytest.mark.usefixtures("ours")

AT_ONCE = 20
"""LangBot's own limit (`concurrency.pipeline`): the rest of a crowd waits."""


@pytest.fixture(scope="module")
def platform(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrowdPlatform]:
    """A platform with a bot whose pipeline has the toolbox and a small window."""
    folder = tmp_path_factory.mktemp("tools")
    with plugin_installed(bed, folder), CrowdPlatform() as platform, group_bot(bed, bed.pipeline(config=CONFIG), platform):
        yield platform


async def test_a_crowd_loses_nothing_and_mixes_nothing_up(
    bed: Bed, model: ScriptedModel, platform: CrowdPlatform
) -> None:
    crowd = Crowd(platform, people(24))
    model.script(otherwise=crowd.model)
    worker = worker_of(bed.langbot.runtime, bed.identity)
    worker.forget_peak()
    import time
    t=time.time()
    await crowd.talk(1, 3)
    print(time.time()-t, crowd.close(bed), worker.peak, worker.memory)
    assert crowd.tally.sound
    assert 1 < crowd.tally.at_once <= AT_ONCE
    assert worker.peak < 512
