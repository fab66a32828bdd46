"""The tests' own plugin of tests/e2e/plugins/probe in this process: its runner, its manifest, its tools."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, cast

import yaml
from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.definition.components.tool.tool import Tool as PluginTool
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest

from .plugin import manifest_of
from .tools import Tool

PLUGIN = Path(__file__).resolve().parent.parent / "e2e" / "plugins" / "probe"
_COMPONENTS = "tests.e2e.plugins.probe.components"


def runner() -> Runner:
    return cast(Runner, importlib.import_module(f"{_COMPONENTS}.runner.default").DefaultRunner())


def manifest() -> RunnerManifest:
    return manifest_of(PLUGIN / "components" / "runner" / "default.yaml")


def tools() -> list[Tool]:
    """The plugin's tools as LangBot offers them."""
    return [_tool(path) for path in sorted((PLUGIN / "components" / "tools").glob("*.yaml"))]


def _tool(path: Path) -> Tool:
    component = yaml.safe_load(path.read_text("utf-8"))
    called: PluginTool = importlib.import_module(f"{_COMPONENTS}.tools.{path.stem}").Called()

    async def call(parameters: dict[str, Any]) -> Any:
        return await called.call(parameters, cast(Any, None), 0)

    spec = component["spec"]
    return Tool(path.stem, call, description=spec["llm_prompt"], parameters=spec["parameters"], takes_dict=True)
