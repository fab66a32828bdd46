"""A5: a pipeline of the old built-in agent, migrated by LangBot's own planner, passes LangBot's own check of our form.

LangBot does the planning, the discovery and the check. What stands in for it is its database, which finds every row.
"""

import logging
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from config.settings import Settings
from tests.unit.border import listed_runners, runner_with

pytest.importorskip("langbot", reason="needs LangBot itself")
# A module that LangBot has moved is a failure and no reason to skip.
registry: Any = import_module("langbot.pkg.agent.runner.registry")
migration: Any = import_module("langbot.pkg.api.http.service.pipeline_migration")
planner: Any = import_module("langbot.pkg.pipeline.legacy_config_migration")

RUNNER_ID = "plugin:langbot-team/LocalAgent/default"

OLD_AGENT: dict[str, Any] = {
    "model": {"primary": "m1", "fallbacks": ["m2"], "reasoning": {"m1": "high"}},
    "max-round": 10,
    "prompt": [{"role": "system", "content": "You sell tea."}],
    "knowledge-bases": ["kb1"],
    "rerank-model": "r1",
    "rerank-top-k": 8,
    "box-session-id-template": "{launcher_type}_{sender_id}",
    "enable-all-tools": True,
}
NO_GRANTS = {
    "knowledge-bases": [],
    "enable-all-tools": False,
    "tools": [],
    "mcp-resource-agent-read-enabled": False,
}
"""Without anything that a capability is needed for, so that only the form is judged."""


def plan(section: dict[str, Any]) -> dict[str, Any]:
    """The migration that LangBot plans for a pipeline whose old agent was set up like `section`."""
    ai = {"runner": {"runner": "local-agent", "expire-time": 0}, "local-agent": section}
    planned: dict[str, Any] = planner.plan_legacy_pipeline({"ai": ai, "output": {"misc": {"remove-think": True}}})
    assert planned["state"] == "ready", planned["blockers"]
    return planned


def binding(planned: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = planned["config"]["ai"]["runner_config"][RUNNER_ID]
    return stored


class EveryRow:
    """A database in which whatever is asked for exists."""

    async def execute_async(self, _statement: object) -> "EveryRow":
        return self

    def first(self) -> tuple[str]:
        return ("found",)


async def check(planned: dict[str, Any], **capabilities: bool) -> None:
    """LangBot's check of a planned migration against this runner with these capabilities declared.

    Raises:
        MigrationError: LangBot refuses; `code` says why.
    """
    entries = await listed_runners(runner_with(**capabilities))
    execution = SimpleNamespace(workspace_uuid="w", instance_uuid="i", placement_generation=1)

    async def list_runners(_bound: object) -> list[dict[str, Any]]:
        return entries

    async def require_workspace_context(_context: object) -> object:
        return execution

    app: Any = SimpleNamespace(
        logger=logging.getLogger("langbot"),
        persistence_mgr=EveryRow(),
        plugin_connector=SimpleNamespace(
            is_enable_plugin=True, list_runners=list_runners, require_workspace_context=require_workspace_context
        ),
    )
    app.runner_registry = registry.RunnerRegistry(app)
    await migration.PipelineMigrationService(app)._verify_runtime(execution, planned)


ALL_ON = {"tool_calling": True, "knowledge_retrieval": True}

OLD_PIPELINES: dict[str, dict[str, Any]] = {
    "everything set": {},
    "a bare model": {"model": "m1"},
    "no model": {"model": {"primary": "", "fallbacks": []}},
    "a prompt of old": {"prompt": "You sell tea."},
    "no prompt": {"prompt": []},
    "the singular knowledge base": {"knowledge-bases": [], "knowledge-base": "kb1"},
    "a template that the planner drops": {"box-session-id-template": "{a.b!r}"},
    "a global sandbox": {"box-session-id-template": "{global}"},
    "numbers of old": {"rerank-top-k": "3", "max-round": "x"},
    "chosen tools and resources": {
        "enable-all-tools": False,
        "tools": ["exec"],
        "mcp-resources": [{"server_name": "s", "uri": "u"}],
    },
}


def test_A5_the_planner_is_the_one_this_form_was_made_for() -> None:
    assert planner.PLANNER_VERSION == "5"


@pytest.mark.parametrize("change", OLD_PIPELINES.values(), ids=OLD_PIPELINES.keys())
async def test_A5_a_migrated_pipeline_passes_the_check_of_the_host(change: dict[str, Any]) -> None:
    await check(plan({**OLD_AGENT, **change}), **ALL_ON)


async def test_A5_the_form_as_it_is_passes_without_a_capability_it_may_not_have_yet() -> None:
    await check(plan({**OLD_AGENT, **NO_GRANTS}))


@pytest.mark.parametrize("missing", ALL_ON)
async def test_A5_the_host_grants_tools_and_knowledge_only_to_a_runner_that_declares_them(missing: str) -> None:
    with pytest.raises(migration.MigrationError) as refused:
        await check(plan(OLD_AGENT), **{**ALL_ON, missing: False})
    assert refused.value.code == "runner_resource_unavailable"


@pytest.mark.parametrize(
    ("key", "value"),
    [("unheard-of", 1), ("timeout", "300"), ("tool-execution-mode", "sequential"), ("prompt", "text"), ("model", [])],
)
async def test_A5_the_check_does_refuse_what_the_form_has_no_room_for(key: str, value: object) -> None:
    planned = plan({**OLD_AGENT, **NO_GRANTS})
    binding(planned)[key] = value
    with pytest.raises(migration.MigrationError) as refused:
        await check(planned)
    assert refused.value.code == "runner_schema_incompatible"


@pytest.mark.parametrize("change", OLD_PIPELINES.values(), ids=OLD_PIPELINES.keys())
def test_A5_a_migrated_binding_reads_without_a_note(change: dict[str, Any]) -> None:
    _, notes = Settings.read(binding(plan({**OLD_AGENT, **change})))
    assert notes == ()


def test_A5_a_migrated_binding_keeps_what_the_old_agent_was_told() -> None:
    settings, _ = Settings.read(binding(plan(OLD_AGENT)))
    assert settings.model.order == ("m1", "m2")
    assert settings.model.reasoning == {"m1": "high"}
    assert settings.prompt == ({"role": "system", "content": "You sell tea."},)
    assert settings.knowledge.bases == ("kb1",)
    assert (settings.knowledge.rerank_model, settings.knowledge.rerank_top_k) == ("r1", 8)
    assert settings.box.session_template == "{launcher_type}_{sender_id}"
    assert settings.tools.mode.value == "serial"
    assert settings.remove_think is True
