"""Tools whose work a test can follow: a weight, a stamp, a wait at a door, and a stop of runs."""

from __future__ import annotations

from typing import Any

import httpx
from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session
from langbot_plugin.api.proxies.runner import RunnerAdminAPIProxy

# A tool that answers at once, with a dict.

GRAMS = {"heron": 1731, "wren": 9}


class Weigh(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        bird = str(params["bird"])
        return {"bird": bird, "grams": GRAMS[bird], "ticket": f"ticket-{bird}-{GRAMS[bird]}"}


# A tool that gives back what it was given: a result that belongs to one conversation alone.


class Stamp(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        return {"stamped": str(params["text"])}


# A tool that takes as long as the test wants: it waits for the answer of a door.


class Knock(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> str:
        async with httpx.AsyncClient(timeout=120, trust_env=False) as client:
            return (await client.get(str(params["url"]))).text


# What an administrator's plugin does: cancel runs. The Host allows it to `runner.admin_plugins` alone.


class StopRuns(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        host = RunnerAdminAPIProxy(self.plugin.plugin_runtime_handler)
        page = await host.run_list(conversation_id=str(params["conversation"]), statuses=["running"])
        for run in page.items:
            await host.run_cancel(run.run_id, reason="stopped by the toolbox")
        return {"asked_to_stop": [run.run_id for run in page.items]}
