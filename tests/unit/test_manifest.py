"""A1, A2: the plugin and its runner as the SDK's own discovery reads them."""

import re
from importlib import metadata
from xml.etree import ElementTree

import pytest
from langbot_plugin.api.definition.plugin import BasePlugin
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest
from packaging.requirements import Requirement
from packaging.version import Version

from config.fields import FIELDS
from config.locales import Locale
from main import LocalAgent
from tests.unit.discovery import ROOT, RUNNER, listed_runners, load

ALL_CAPABILITIES = {
    *("streaming", "tool_calling", "knowledge_retrieval", "multimodal_input"),
    *("skill_authoring", "interrupt", "steering", "interactions"),
}
PERMISSIONS = {
    "models": {"invoke", "stream", "rerank", "count_tokens"},
    "tools": {"detail", "call"},
    "knowledge_bases": {"list", "retrieve"},
    "history": {"page"},
    "interactions": {"request"},
}
MAY_BE_ADDED = {"history": {"search"}, "storage": {"plugin"}}
"""Asked for only once they are used."""


async def manifest() -> RunnerManifest:
    [entry] = await listed_runners(load(RUNNER))
    return RunnerManifest.model_validate(entry["manifest"])


def test_A1_author_name_and_version_are_those_the_migration_asks_for() -> None:
    plugin = load("manifest.yaml").metadata
    assert (plugin.author, plugin.name, plugin.version) == ("langbot-team", "LocalAgent", "0.4.0")
    assert Version(str(plugin.version)) >= Version("0.2.1")


async def test_A1_the_runner_id_is_the_one_pipelines_are_migrated_to() -> None:
    assert (await manifest()).id == "plugin:langbot-team/LocalAgent/default"


def test_A1_the_manifest_finds_one_runner_where_it_says() -> None:
    spec = load("manifest.yaml").spec
    assert spec == {"config": [], "components": {"Runner": {"fromDirs": [{"path": "components/runner/"}]}}}
    assert [path.name for path in (ROOT / "components/runner").glob("*.y*ml")] == ["default.yaml"]


async def test_A1_the_runner_serves_agents_and_no_event_processor() -> None:
    assert (await manifest()).usages == ["agent"]


def test_A1_the_plugin_class_is_the_one_the_manifest_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert load("manifest.yaml").get_python_component_class() is LocalAgent
    assert issubclass(LocalAgent, BasePlugin)


def test_A1_the_runner_class_is_where_the_component_says() -> None:
    execution = load(RUNNER).execution
    assert execution is not None
    assert (execution.python.path, execution.python.attr) == ("default.py", "DefaultRunner")


async def test_A2_the_runtime_accepts_every_key_and_value_of_the_component() -> None:
    assert len(await listed_runners(load(RUNNER))) == 1


@pytest.mark.parametrize("section", ["capabilities", "permissions"])
async def test_A2_one_unknown_key_would_make_the_runner_vanish(section: str) -> None:
    runner = load(RUNNER)
    runner.spec[section]["telepathy"] = True
    assert await listed_runners(runner) == []


async def test_A2_capabilities_are_among_those_this_runner_is_meant_to_have() -> None:
    declared = (await manifest()).capabilities.model_dump()
    assert {name for name, on in declared.items() if on} <= ALL_CAPABILITIES


async def test_A2_every_capability_of_the_sdk_is_stated_so_that_none_is_off_by_oversight() -> None:
    assert set(load(RUNNER).spec["capabilities"]) == set((await manifest()).capabilities.model_dump())


async def test_A2_permissions_are_those_the_runner_uses_and_no_others() -> None:
    asked = {name: set(values) for name, values in (await manifest()).permissions.model_dump().items()}
    for name, values in asked.items():
        needed = PERMISSIONS.get(name, set())
        assert needed <= values <= needed | MAY_BE_ADDED.get(name, set()), name


async def test_A3_the_runtime_hands_on_the_form_whole_and_in_order() -> None:
    assert [item.name for item in (await manifest()).config_schema] == [field.name for field in FIELDS]


def test_A3_no_setting_belongs_to_the_plugin() -> None:
    assert load("manifest.yaml").spec["config"] == []


@pytest.mark.parametrize("path", ["manifest.yaml", RUNNER])
def test_A3_label_and_description_are_in_all_eight_locales(path: str) -> None:
    described = load(path).manifest["metadata"]
    for words in (described["label"], described["description"]):
        assert list(words) == [locale.value for locale in Locale]
        assert all(text.strip() for text in words.values())
    assert len(set(described["description"].values())) == len(Locale)


def test_the_icon_is_a_picture_of_our_own_without_anything_from_outside() -> None:
    icon = load("manifest.yaml").icon_rel_path
    assert icon is not None
    drawing = ElementTree.parse(ROOT / icon).getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"href|<script|<image|url\(", (ROOT / icon).read_text(encoding="utf-8"))


REQUIREMENTS = [line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if line.strip()]


def test_every_requirement_is_a_plain_one_with_a_lower_bound() -> None:
    assert {Requirement(line).name for line in REQUIREMENTS} == {
        *("langbot-plugin", "pydantic", "tiktoken", "jsonschema", "referencing", "regex")
    }
    for requirement in map(Requirement, REQUIREMENTS):
        assert not requirement.url
        assert any(bound.operator == ">=" for bound in requirement.specifier)


def test_every_requirement_admits_what_the_tests_run_with() -> None:
    for requirement in map(Requirement, REQUIREMENTS):
        assert requirement.specifier.contains(metadata.version(requirement.name)), requirement


def test_the_sdk_requirement_admits_the_version_this_runner_was_written_for_and_no_next_one() -> None:
    sdk = next(r for r in map(Requirement, REQUIREMENTS) if r.name == "langbot-plugin")
    assert sdk.specifier.contains("0.7.16")
    assert not sdk.specifier.contains("0.8.0")


def test_the_licence_is_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
