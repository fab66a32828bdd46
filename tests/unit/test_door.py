"""A1, A2, C6, D7: the plugin as the SDK discovers it, and events as the Host's results."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from importlib import metadata
from typing import Any
from xml.etree import ElementTree

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.definition.plugin import BasePlugin
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest
from langbot_plugin.api.entities.builtin.runner.result import (
    MessageCompletedPayload,
    MessageDeltaPayload,
    ProcessorLogPayload,
    RunCompletedPayload,
    RunFailedPayload,
    ToolCallCompletedPayload,
    ToolCallStartedPayload,
)
from packaging.requirements import Requirement
from packaging.version import Version

from components.runner.default import DefaultRunner, result_of
from config.fields import FIELDS
from config.locales import Locale
from main import LocalAgent
from runner.conversation.record import KEY
from runner.host.events import Answer, Completed, Event, Failed, Json, Log, Snapshot, ToolFinished, ToolStarted, Usage
from tests.unit.border import ROOT, RUN_ID, RUNNER, Handler, context, listed_runners, load, text_frame, usage_frame

# A1, C6, D7: events as the Host's results, through the SDK's payload models and the wire's JSON.

PAYLOADS: Mapping[str, type[pydantic.BaseModel]] = {
    "message.delta": MessageDeltaPayload,
    "message.completed": MessageCompletedPayload,
    "tool.call.started": ToolCallStartedPayload,
    "tool.call.completed": ToolCallCompletedPayload,
    "processor.log": ProcessorLogPayload,
    "run.completed": RunCompletedPayload,
    "run.failed": RunFailedPayload,
}
WORDS = st.text(max_size=40)
OBJECTS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers() | WORDS | st.lists(WORDS), max_size=3)
USAGES = st.none() | st.builds(
    Usage,
    st.integers(0),
    st.integers(0),
    st.integers(0),
    st.dictionaries(st.sampled_from(["x", "d.y", "prompt_tokens"]), st.integers()),
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Snapshot, WORDS, st.integers(1)),
    st.builds(Answer, WORDS, st.none() | OBJECTS, st.lists(WORDS, max_size=3).map(tuple)),
    st.builds(ToolStarted, WORDS, WORDS, OBJECTS),
    st.builds(ToolFinished, WORDS, WORDS, st.none() | OBJECTS, st.none() | WORDS),
    st.builds(Log, WORDS, st.sampled_from(["debug", "info", "warning", "error"])),
    st.builds(Completed, st.sampled_from(["stop", "error", "length"]), USAGES),
    st.builds(Failed, WORDS, st.sampled_from(["runner.no_model", "cancelled"]), st.booleans(), USAGES),
)


def over_the_wire(event: Event) -> dict[str, Any]:
    """The result as the Host gets it: dumped by the SDK, written as JSON, read again."""
    return json.loads(json.dumps(result_of(RUN_ID, event).model_dump(mode="json")))  # type: ignore[no-any-return]


@given(EVENTS)
def test_C6_every_event_passes_the_hosts_strict_check_after_the_wire(event: Event) -> None:
    result = over_the_wire(event)
    PAYLOADS[result["type"]].model_validate(result["data"])
    assert result["run_id"] == RUN_ID


def test_C6_a_snapshot_is_cumulative_numbered_and_not_final() -> None:
    chunk = MessageChunk.model_validate(over_the_wire(Snapshot("so far", 3))["data"]["chunk"])
    assert (chunk.role, chunk.content, chunk.all_content, chunk.msg_sequence, chunk.is_final) == (
        "assistant",
        "so far",
        "so far",
        3,
        False,
    )


def test_C6_the_answer_equals_the_last_snapshot_on_the_wire_too() -> None:
    shown, answer = over_the_wire(Snapshot("whole", 1)), over_the_wire(Answer("whole"))
    assert answer["data"]["message"]["content"] == shown["data"]["chunk"]["all_content"]


def test_B6_the_record_travels_under_one_private_key_and_is_absent_when_there_is_none() -> None:
    message = Message.model_validate(over_the_wire(Answer("a", {"calls": []}))["data"]["message"])
    assert message.provider_specific_fields == {KEY: {"calls": []}}
    nothings: tuple[dict[str, Json] | None, ...] = (None, {})
    for nothing in nothings:
        assert over_the_wire(Answer("a", nothing))["data"]["message"]["provider_specific_fields"] is None


def test_H3_files_are_attached_to_the_completed_message() -> None:
    assert over_the_wire(Answer("a", None, ("f1", "f2")))["data"]["file_ids"] == ["f1", "f2"]


def test_C6_the_run_ends_without_a_message() -> None:
    assert over_the_wire(Completed())["data"] == {"finish_reason": "stop"}


def test_C5_usage_goes_out_on_the_terminal_result_with_the_providers_own_counters() -> None:
    for event in (
        Completed("stop", Usage(1, 2, 3, {"d.cached": 4})),
        Failed("x", "c", False, Usage(1, 2, 3, {"d.cached": 4})),
    ):
        assert over_the_wire(event)["usage"] == {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "total_tokens": 3,
            "d.cached": 4,
        }


def test_C5_unknown_usage_is_absent_not_zero() -> None:
    assert over_the_wire(Completed())["usage"] is None


def test_C5_an_extra_counter_never_overrides_the_three_that_the_host_reads() -> None:
    assert over_the_wire(Completed("stop", Usage(1, 2, 3, {"prompt_tokens": 99})))["usage"]["prompt_tokens"] == 1


@pytest.mark.parametrize("letter", ["a", "中", "😀"])
def test_C6_a_log_line_is_cut_to_what_the_host_takes_and_fits_a_frame(letter: str) -> None:
    result = over_the_wire(Log(letter * 200_000))
    ProcessorLogPayload.model_validate(result["data"])
    assert len(json.dumps(result)) < 2**20


def test_C8_a_failure_carries_code_and_retryable() -> None:
    assert over_the_wire(Failed("why", "runner.no_model", True))["data"] == {
        "error": "why",
        "code": "runner.no_model",
        "retryable": True,
    }


def test_D7_a_failed_tool_call_has_an_error_and_no_result() -> None:
    data = over_the_wire(ToolFinished("c", "f", None, "broke"))["data"]
    assert (data["result"], data["error"]) == (None, "broke")


def runner_over(handler: Handler) -> DefaultRunner:
    runner = DefaultRunner()
    runner.bind_runtime(plugin_runtime_handler=handler)  # type: ignore[no-untyped-call]  # the SDK has no annotations
    return runner


async def results(
    runner: DefaultRunner, text: str = "hello", config: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    async with asyncio.timeout(20):
        return [result.model_dump(mode="json") async for result in runner.invoke(context(text, config=config))]


async def test_A1_a_run_through_the_sdks_own_invoke_answers_and_ends_once() -> None:
    got = await results(runner_over(Handler([[text_frame("Hi"), text_frame(" you"), usage_frame(2, 3)]])))
    kinds = [result["type"] for result in got]
    assert kinds[-2:] == ["message.completed", "run.completed"]
    assert kinds.count("message.completed") == 1
    assert got[-2]["data"]["message"]["content"] == "Hi you"
    assert got[-1]["usage"]["total_tokens"] == 5


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model": None},
        {"model": "a"},
        {
            "model": {"primary": "a", "fallbacks": "", "reasoning": None},
            "timeout": "x",
            "context-history-fetch-limit": None,
        },
        {"model": {"primary": ["a"]}, "prompt": "be kind"},
        {"prompt": {"role": "system"}, "model": 5},
        {"timeout": 0, "notice-language": "klingon"},
    ],
    ids=str,
)
async def test_A4_whatever_a_binding_holds_the_run_ends_with_words(config: dict[str, object]) -> None:
    got = await results(runner_over(Handler()), config=config)
    assert [result["type"] for result in got].count("message.completed") <= 1
    assert got[-1]["type"] in {"run.completed", "run.failed"}


async def test_G4_one_instance_serves_many_runs_at_once_without_mixing_them() -> None:
    def echo(sent: dict[str, Any]) -> str:
        return str(sent["messages"][-1]["content"])

    class Echo(Handler):
        async def call_action_generator(self, action: Any, data: dict[str, Any], timeout: float = 15.0) -> Any:
            for letter in echo(data):
                await asyncio.sleep(0)
                yield text_frame(letter)

    runner = runner_over(Echo())
    words = [f"message {place}" for place in range(20)]
    got = await asyncio.gather(*(results(runner, word) for word in words))
    assert [each[-2]["data"]["message"]["content"] for each in got] == words


# A1, A2: the plugin and its runner as the SDK's own discovery reads them.

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
