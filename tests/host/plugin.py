"""The plugin's side: the SDK's own `PluginRuntimeHandler` around the Runner under test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import yaml
from langbot_plugin.api.definition.components.manifest import ComponentManifest
from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.definition.plugin import NonePlugin
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest
from langbot_plugin.cli.run.handler import PluginRuntimeHandler
from langbot_plugin.entities.io.actions.enums import ActionType, CommonAction, RuntimeToPluginAction
from langbot_plugin.entities.io.errors import ConnectionClosedError
from langbot_plugin.runtime.io.connection import Connection
from langbot_plugin.runtime.plugin.container import ComponentContainer, PluginContainer, RuntimeContainerStatus
from langbot_plugin.runtime.plugin.runner_service import RunnerRuntimeService
from langbot_plugin.runtime.security import PLUGIN_FILE_STORAGE_DIR_ENV

from .faults import Fault, FaultPlan, Hooks
from .records import Call, CallLog
from .wire import InlineCodec

if TYPE_CHECKING:
    from .world import World

AUTHOR, NAME, COMPONENT = "langbot-team", "LocalAgent", "default"
RUNNER_ID = f"plugin:{AUTHOR}/{NAME}/{COMPONENT}"
_RUN = RuntimeToPluginAction.RUN_RUNNER.value

# Every handler prepares a folder for file transfers; one folder for all keeps them out of the working tree.
_FILES = tempfile.TemporaryDirectory(prefix="langbot-test-host-")


def full_manifest() -> RunnerManifest:
    """A manifest that declares all a Runner can ask for, for probe runners."""
    return RunnerManifest.model_validate(
        {
            "id": RUNNER_ID,
            "name": COMPONENT,
            "label": {"en_US": "Runner under test"},
            "usages": ["agent"],
            "capabilities": dict.fromkeys(
                (
                    "streaming",
                    "tool_calling",
                    "knowledge_retrieval",
                    "multimodal_input",
                    "skill_authoring",
                    "interrupt",
                    "steering",
                    "interactions",
                ),
                True,
            ),
            "permissions": {
                "models": ["invoke", "stream", "rerank", "count_tokens"],
                "tools": ["detail", "call"],
                "knowledge_bases": ["list", "retrieve"],
                "history": ["page", "search"],
                "events": ["get", "page"],
                "storage": ["plugin", "workspace"],
                "interactions": ["request"],
            },
        }
    )


def manifest_of(component: Path) -> RunnerManifest:
    """The manifest of a component's YAML file, as the runtime builds it.

    Raises ValueError where the runtime would skip the Runner with nothing but a log line.
    """
    container = container_for(_bare_runner(), yaml.safe_load(component.read_text("utf-8")))
    built = _service(container)._build_runner_entry(container, container.components[0])
    if built is None:
        raise ValueError(f"{component} is no valid Runner manifest")
    return RunnerManifest.model_validate(built["manifest"])


def _bare_runner() -> Runner:
    return Runner()  # type: ignore[no-untyped-call]  # as `NonePlugin` below: the SDK leaves both without types


def component_spec(manifest: RunnerManifest) -> dict[str, Any]:
    """A component YAML's content for a manifest."""
    return {
        "apiVersion": "langbot/v1",
        "kind": "Runner",
        "metadata": {"name": manifest.name, "label": {"en_US": "Runner under test"}},
        "spec": {"usages": list(manifest.usages), "events": ["*"]},
    }


def container_for(runner: Runner, spec: dict[str, Any]) -> PluginContainer:
    plugin = {
        "apiVersion": "v1",
        "kind": "Plugin",
        "metadata": {"author": AUTHOR, "name": NAME, "version": "0.0.0", "label": {"en_US": NAME}},
        "spec": {},
    }
    component = ComponentContainer(
        manifest=ComponentManifest(owner=NAME, manifest=spec, rel_path="runner.yaml"),
        component_instance=runner,
        component_config={},
    )
    return PluginContainer(
        manifest=ComponentManifest(owner=NAME, manifest=plugin, rel_path="manifest.yaml"),
        plugin_instance=NonePlugin(),  # type: ignore[no-untyped-call]
        enabled=True,
        priority=0,
        plugin_config={},
        status=RuntimeContainerStatus.INITIALIZED,
        components=[component],
    )


def _service(container: PluginContainer) -> RunnerRuntimeService:
    return RunnerRuntimeService(plugins=lambda: [container], find_plugin=lambda _author, _name: container)


def runtime_service(container: PluginContainer, host_handler: object) -> RunnerRuntimeService:
    """The runtime's own forwarding of a run, with its deadline and failure rules."""
    container._runtime_plugin_handler = host_handler
    return _service(container)


class ObservedPluginHandler(InlineCodec, PluginRuntimeHandler):
    """The real handler of a plugin process that also keeps the log of what the plugin asked.

    Calls are timed here, in the plugin, as only it knows which answer it had before it asked the next question.
    """

    log: CallLog
    faults: FaultPlan
    hooks: Hooks
    world: World

    async def call_action(
        self,
        action: ActionType,
        data: dict[str, Any],
        timeout: float | None = 15.0,
        action_context: Any = None,
        cancel_peer_on_cancel: bool = False,
    ) -> dict[str, Any]:
        if isinstance(action, CommonAction):
            self._note_protocol(action)
            return await super().call_action(action, data, timeout, action_context, cancel_peer_on_cancel)
        call, seq, timeout = self._begin(action, data, timeout)
        try:
            self._maybe_lose(call)
            answer = await super().call_action(action, data, timeout, action_context, cancel_peer_on_cancel)
        except BaseException as error:
            self.log.end(call, seq, error)
            raise
        call.items = 1
        self.log.end(call, seq)
        return answer

    async def call_action_generator(
        self, action: ActionType, data: dict[str, Any], timeout: float = 15.0, action_context: Any = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        call, seq, limit = self._begin(action, data, timeout)
        error: BaseException | None = None
        try:
            self._maybe_lose(call)
            items = super().call_action_generator(action, data, limit or timeout, action_context)
            async with aclosing(cast(AsyncGenerator[dict[str, Any], None], items)) as owned:
                async for item in owned:
                    call.items += 1
                    yield item
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.log.end(call, seq, error)

    def _begin(self, action: ActionType, data: dict[str, Any], timeout: float | None) -> tuple[Call, int, float | None]:
        self.hooks.run(action.value)
        fault = self.faults.take(action.value)
        # The SDK takes the next number before its first await, so that this one is ours.
        seq = self.seq_id_index + 1
        run_id = data.get("run_id") or self.world.active_run()
        call = self.log.start(action.value, data, seq, run_id, fault)
        self._note(run_id, call)
        if fault is not None and fault.kind == "hang" and fault.seconds is not None:
            timeout = fault.seconds
        return call, seq, timeout

    def watch_runs(self) -> None:
        """Lets a record know when its Runner is really at its end: the runtime closes it after the run has ended."""
        forward = cast(Callable[[dict[str, Any]], AsyncGenerator[Any, None]], self.actions[_RUN])

        async def watched(data: dict[str, Any]) -> AsyncGenerator[Any, None]:
            record = self.world.run(data["context"]["run_id"])
            assert record is not None
            record.runner_closed.clear()
            try:
                async with aclosing(forward(data)) as results:
                    async for result in results:
                        yield result
            finally:
                record.runner_closed.set()

        self.actions[_RUN] = cast(Any, watched)

    def _note(self, run_id: str | None, call: Call) -> None:
        record = self.world.run(run_id)
        if record is not None:
            record.calls.all.append(call)
            record.news()

    @staticmethod
    def _maybe_lose(call: Call) -> None:
        if call.fault == Fault.lost():
            raise ConnectionClosedError("Connection closed")

    def _note_protocol(self, action: CommonAction) -> None:
        if action is CommonAction.STREAM_ACK:
            self.log.acknowledgements += 1
        elif action is CommonAction.CANCEL_ACTION:
            self.log.peer_cancellations += 1


async def _no_settings(_settings: dict[str, Any]) -> None:
    """Plugin settings are not part of a run."""


def plugin_side(connection: Connection, container: PluginContainer, runner: Runner) -> ObservedPluginHandler:
    """A plugin process around `runner`, bound as cli/run/controller.py binds components."""
    before = os.environ.get(PLUGIN_FILE_STORAGE_DIR_ENV)
    os.environ[PLUGIN_FILE_STORAGE_DIR_ENV] = _FILES.name
    try:
        handler = ObservedPluginHandler(connection, _no_settings)
    finally:
        if before is None:
            os.environ.pop(PLUGIN_FILE_STORAGE_DIR_ENV)
        else:
            os.environ[PLUGIN_FILE_STORAGE_DIR_ENV] = before
    handler.plugin_container = container
    handler.watch_runs()
    runner.bind_runtime(  # type: ignore[no-untyped-call]  # the SDK leaves this method without types
        plugin_runtime_handler=handler, plugin_config={}, plugin_identity=f"{AUTHOR}/{NAME}"
    )
    return handler


def files_folder() -> str:
    return _FILES.name
