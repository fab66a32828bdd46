"""L11: what an idle worker of this plugin holds beside one with an empty Runner, both started as LangBot does it.

`python -m bench.idle` prints the MiB of both, in one run.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from langbot_plugin.entities.io.actions.enums import PluginToRuntimeAction, RuntimeToPluginAction
from langbot_plugin.entities.io.resp import ActionResponse
from langbot_plugin.runtime.io.connection import Connection
from langbot_plugin.runtime.io.controllers.stdio.client import StdioClientController
from langbot_plugin.runtime.io.handler import Handler

from bench.table import Row
from demo.bootstrap import ROOT
from demo.package import build
from tests.e2e.machines import MIB

LIMIT: Final = 20
"""MiB that ours may hold more (L11)."""

_SETTLED: Final = 2.0
"""Seconds after which an idle worker has done all that it does by itself."""

_YARDSTICK: Final = ROOT / "tests" / "e2e" / "plugins" / "passthrough"
_EMPTY: Final = """
from langbot_plugin.api.definition.components.runner.runner import Runner


class DefaultRunner(Runner):
    async def run(self, ctx):
        return None
"""


class _Runtime(Handler):
    """As much of LangBot's plugin runtime as a worker needs to come up."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.registered = asyncio.Event()

        @self.action(PluginToRuntimeAction.REGISTER_PLUGIN)
        async def register(data: dict[str, Any]) -> ActionResponse:
            self.registered.set()
            return ActionResponse.success({})


@asynccontextmanager
async def worker(plugin: Path) -> AsyncIterator[int]:
    """The worker of an unpacked plugin, initialised and idle; its process id."""
    arguments = ["-m", "langbot_plugin.cli.__init__", "run", "-s", "--prod"]
    control = StdioClientController(sys.executable, arguments, dict(os.environ), str(plugin), capture_stderr=True)
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def connected(connection: Connection) -> None:
        runtime = _Runtime(connection)
        listening = asyncio.create_task(runtime.run())
        await runtime.registered.wait()
        settings = {"enabled": True, "priority": 0, "plugin_config": {}}
        await runtime.call_action(RuntimeToPluginAction.INITIALIZE_PLUGIN, {"plugin_settings": settings}, timeout=60)
        assert control.process is not None
        ready.set_result(control.process.pid)
        await listening

    running = asyncio.create_task(control.run(connected))
    try:
        async with asyncio.timeout(60):
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        yield ready.result()
    finally:
        if control.process is not None and control.process.returncode is None:
            control.process.kill()
        running.cancel()
        await asyncio.wait({running})


def memory(pid: int) -> float:
    """MiB that a process holds by itself and shares, now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


async def measured() -> tuple[float, float]:
    """MiB of a worker with an empty Runner, and of ours."""
    with tempfile.TemporaryDirectory(prefix="localagent-idle-") as folder:
        empty, ours = Path(folder, "empty"), Path(folder, "ours")
        shutil.copytree(_YARDSTICK, empty)
        (empty / "components" / "runner" / "default.py").write_text(_EMPTY, "utf-8")
        shutil.unpack_archive(build(ROOT, Path(folder, "dist")), ours, "zip")
        async with worker(empty) as least, worker(ours) as mine:
            await asyncio.sleep(_SETTLED)
            return memory(least), memory(mine)


def rows() -> Iterator[Row]:
    least, mine = asyncio.run(measured())
    yield Row("L11", "idle worker", "memory", round(least, 1), round(mine, 1), round(least + LIMIT, 1), "MiB")


if __name__ == "__main__":
    before, after = asyncio.run(measured())
    print(f"empty Runner {before:.1f} MiB, ours {after:.1f} MiB: {after - before:+.1f} (at most +{LIMIT})")
