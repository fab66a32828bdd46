"""The package in the real LangBot: as the SDK's own command built it (N1), installed through its endpoint, offered with
its form, bound word for word."""

from __future__ import annotations

import pytest
import yaml

from tests.e2e.bed import Bed


def test_A1_the_installed_plugin_offers_its_runner(bed: Bed) -> None:
    (plugin,) = [row for row in bed.langbot.api.plugins() if row.name == bed.identity.name]
    assert (plugin.author, plugin.version, plugin.debug) == (bed.identity.author, bed.identity.version, False)
    assert bed.runner_id == f"plugin:{bed.identity.author}/{bed.identity.name}/default"
    assert bed.runner_id in bed.langbot.api.runners()


def test_A3_the_page_gets_the_form_of_the_component_field_by_field(bed: Bed) -> None:
    component = yaml.safe_load((bed.plugin / "components/runner/default.yaml").read_text(encoding="utf-8"))
    declared = [(item["name"], item["type"]) for item in component["spec"]["config"]]
    assert [(item.name, item.type) for item in bed.langbot.api.form(bed.runner_id)] == declared


@pytest.mark.usefixtures("ours")
def test_A3_the_form_holds_the_fields_that_pipelines_bring_along(bed: Bed) -> None:
    defaults = {item.name: item.default for item in bed.langbot.api.form(bed.runner_id)}
    assert defaults["timeout"] == 300
    assert defaults["tool-execution-mode"] == "parallel"
    assert {"model", "prompt", "remove-think", "knowledge-bases", "context-window-tokens"} <= set(defaults)


def test_A4_a_binding_is_stored_word_for_word(bed: Bed) -> None:
    odd = {"model": {"primary": bed.model("scripted"), "fallbacks": ""}, "timeout": "300", "unknown-key": None}
    pipeline = bed.pipeline()
    bed.langbot.api.bind(pipeline, bed.runner_id, odd)
    assert bed.langbot.api.binding(pipeline) == (bed.runner_id, odd)
