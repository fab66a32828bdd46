"""A crowd at one bot, and what an operator does meanwhile, in a LangBot that keeps its data in PostgreSQL.

The runner keeps nothing between runs: whichever worker answers next finds history and summary with the Host. Full size:
`python -m bench.load`.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo import package
from demo.processes import Children, wait_until
from tests.e2e.bed import Bed, furnish
from tests.e2e.bots import group_bot
from tests.e2e.crowd import CONFIG, ROOM, Crowd, CrowdPlatform, people
from tests.e2e.machines import Machines, Worker, postgres, worker_of
from tests.e2e.scripted_model import Request, ScriptedModel
from tests.e2e.toolbox import plugin_installed

pytestmark = pytest.mark.usefixtures("ours")

AT_ONCE = 8
"""How many messages LangBot handles at once here (`concurrency.pipeline`, 20 unless set); the rest of a crowd waits."""
MEMORY = 512
"""MiB: what LangBot allows a worker (`plugin.worker.max_memory_mb`)."""
PREVIOUS = "0.2.9"


@dataclass(slots=True)
class Site:
    """A LangBot on PostgreSQL, its machines, and a platform whose bot has the toolbox and a small window.

    It begins with the package of an older version.
    """

    machines: Machines
    bed: Bed
    platform: CrowdPlatform
    pipeline: str
    current: Path

    @property
    def worker(self) -> Worker:
        return worker_of(self.bed.langbot.runtime, self.bed.identity)

    def crowd(self, number: int) -> Crowd:
        """That many new people, with the model that answers them."""
        crowd = Crowd(self.platform, people(number), self.bed.langbot.api.idle)
        self.bed.scripted.script(otherwise=crowd.model)
        return crowd

    @property
    def version(self) -> str:
        return next(row.version for row in self.bed.langbot.api.plugins() if row.name == self.bed.identity.name)


@pytest.fixture(scope="module")
def site(plugin_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    older = package.build(_older(plugin_folder, folder / "older"), folder / "dist")
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        settings = {**ROOM, **stack.enter_context(postgres()), "CONCURRENCY__PIPELINE": str(AT_ONCE)}
        machines = Machines(stack.enter_context(Children()), folder, settings)
        bed = furnish(machines.start("first"), plugin_folder, older, package.identity(plugin_folder), model)
        stack.enter_context(plugin_installed(bed, folder / "toolbox"))
        platform = stack.enter_context(CrowdPlatform())
        pipeline = bed.pipeline(config=CONFIG)
        stack.enter_context(group_bot(bed, pipeline, platform))
        yield Site(machines, bed, platform, pipeline, package.build(plugin_folder, folder / "dist"))


def _older(plugin: Path, target: Path) -> Path:
    """The same plugin under an older version."""
    for path in package.files(plugin):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(plugin / path, target / path)
    manifest = target / "manifest.yaml"
    text, changed = re.subn(r"^( +version:).*$", rf"\1 {PREVIOUS}", manifest.read_text("utf-8"), flags=re.MULTILINE)
    assert changed == 1
    manifest.write_text(text, "utf-8")
    return target


def test_a_crowd_notices_what_it_is_there_to_notice() -> None:
    ann, bob = people(2)
    crowd = Crowd(CrowdPlatform(), [ann, bob], lambda: True)
    said = {"role": "user", "content": ann.says(1)}
    crowd.model(Request({"messages": [said]}, {}))
    assert crowd.tally.mixed_up == []
    crowd.model(Request({"messages": [{"role": "system", "content": bob.word}, said]}, {}))
    crowd.judge(ann, 1, [bob.hears(1)])
    assert len(crowd.tally.crossed) == 2
    crowd.judge(ann, 1, [ann.hears(1)])
    crowd.model(Request({"messages": [{"role": "user", "content": ann.says(2)}]}, {}))
    assert len(crowd.tally.forgotten) == 1
    crowd.judge(ann, 2, [])
    assert (len(crowd.tally.lost), len(crowd.tally.failed)) == (1, 1)


async def test_F6_a_plugin_that_is_replaced_by_a_newer_package_carries_its_conversations_on(site: Site) -> None:
    api, crowd = site.bed.langbot.api, site.crowd(1)
    await crowd.talk(1, 5)
    assert crowd.tally.summaries > 0
    before, binding = site.worker, api.binding(site.pipeline)
    assert site.version == PREVIOUS
    await asyncio.to_thread(api.install, site.current)
    assert site.version == site.bed.identity.version != PREVIOUS
    assert site.worker.pid != before.pid
    assert api.binding(site.pipeline) == binding
    await crowd.talk(6, 6)
    assert crowd.close().sound


async def test_Q3_a_crowd_loses_nothing_and_mixes_nothing_up(site: Site) -> None:
    worker, crowd = site.worker, site.crowd(10)
    worker.forget_peak()
    await crowd.talk(1, 2)
    assert crowd.close().sound
    assert 1 < crowd.tally.at_once <= AT_ONCE
    assert worker.peak < MEMORY


async def test_Q4_a_worker_that_is_killed_costs_the_runs_under_way_and_no_more(site: Site) -> None:
    crowd, worker = site.crowd(2), site.worker
    await crowd.talk(1, 1)
    site.bed.scripted.script(otherwise=crowd.holding)
    async with asyncio.TaskGroup() as group:
        group.create_task(crowd.talk(2, 2))
        await asyncio.to_thread(wait_until, "all to be at the model", lambda: crowd.held == 2, 60)
        worker.kill()
        site.bed.scripted.script(otherwise=crowd.model)
    assert (crowd.tally.answered, len(crowd.tally.failed), crowd.tally.lost) == (2, 2, [])
    await asyncio.to_thread(wait_until, "a new worker", lambda: site.worker.pid != worker.pid, 60)
    site.bed.langbot.api.wait_for_runner(site.bed.identity.author, site.bed.identity.name)
    await crowd.talk(3, 3)
    assert crowd.close().answered == 4
    assert crowd.tally.mixed_up == []


async def test_F6_another_runtime_and_a_new_host_carry_a_conversation_on_with_its_summary(site: Site) -> None:
    crowd = site.crowd(1)
    await crowd.talk(1, 5)
    assert crowd.tally.summaries > 0
    await asyncio.to_thread(site.machines.change_runtime, site.bed, "second")
    await crowd.talk(6, 6)
    await asyncio.to_thread(site.machines.restart_host, site.bed)
    await asyncio.to_thread(wait_until, "the bot's connection", lambda: site.platform.connected, 60)
    await crowd.talk(7, 7)
    assert crowd.close().sound
