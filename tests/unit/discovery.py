"""The plugin as the SDK's runtime discovers it, from the manifests on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from langbot_plugin.api.definition.components.base import NoneComponent
from langbot_plugin.api.definition.components.manifest import ComponentManifest
from langbot_plugin.api.definition.plugin import NonePlugin
from langbot_plugin.runtime.plugin.container import ComponentContainer, PluginContainer, RuntimeContainerStatus
from langbot_plugin.runtime.plugin.runner_service import RunnerRuntimeService

ROOT = Path(__file__).parent.parent.parent
RUNNER = "components/runner/default.yaml"


def load(path: str) -> ComponentManifest:
    """The plugin's manifest or that of a component. `path` is relative to the repository."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return ComponentManifest(owner="langbot-team/LocalAgent", manifest=yaml.safe_load(text), rel_path=path)


async def listed_runners(runner: ComponentManifest) -> list[dict[str, Any]]:
    """What the plugin runtime tells LangBot: one entry, or none when it skips the runner as invalid."""
    nothing = NoneComponent()  # type: ignore[no-untyped-call]
    component = ComponentContainer(manifest=runner, component_instance=nothing, component_config={})
    plugin = PluginContainer(
        manifest=load("manifest.yaml"),
        plugin_instance=NonePlugin(),  # type: ignore[no-untyped-call]
        enabled=True,
        priority=0,
        plugin_config={},
        status=RuntimeContainerStatus.INITIALIZED,
        components=[component],
    )
    return await RunnerRuntimeService(
        plugins=lambda: [plugin], find_plugin=lambda _author, _name: plugin
    ).list_runners()


def runner_with(**capabilities: bool) -> ComponentManifest:
    """The runner's component with some capabilities declared differently from what is on disk."""
    runner = load(RUNNER)
    declared: Mapping[str, bool] = runner.spec["capabilities"]
    runner.spec["capabilities"] = {**declared, **capabilities}
    return runner
