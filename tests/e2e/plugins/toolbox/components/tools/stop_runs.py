"""What an administrator's plugin does: cancel runs. The Host allows it to `runner.admin_plugins` alone."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.tool.tool import Tool
from langbot_plugin.api.entities.builtin.provider.session import Session
from langbot_plugin.api.proxies.runner import RunnerAdminAPIProxy


class StopRuns(Tool):
    async def call(self, params: dict[str, Any], session: Session, query_id: int) -> dict[str, Any]:  # type: ignore[override]
        host = RunnerAdminAPIProxy(self.plugin.plugin_runtime_handler)
        page = await host.run_list(conversation_id=str(params["conversation"]), statuses=["running"])
        for run in page.items:
            await host.run_cancel(run.run_id, reason="stopped by the toolbox")
        return {"asked_to_stop": [run.run_id for run in page.items]}
