"""Tools, skills, knowledge, sandbox and storage."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.proxies.runner import RunnerAPIProxy
from langbot_plugin.api.proxies.runner.common import PermissionDeniedError

from tests.host import Attachment, Box, Chunk, KnowledgeBase, Model, Skill, TestHost, Tool, mcp_content

from .probes import Probe, completed, error_of


def boom(**_parameters: Any) -> Any:
    raise RuntimeError("no such city")


@pytest.mark.parametrize("value", ["text", {"a": 1}, [1, 2], None, 3, True, mcp_content("hi")])
async def test_a_tool_may_return_any_json_value(value: Any) -> None:
    async def call(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await api.call_tool("t", {})

    probe = Probe(call)
    await TestHost(probe, tools=[Tool("t", result=value)]).say("hi")
    assert probe.seen == [value]


async def test_a_failing_plugin_tool_is_an_ordinary_text_and_other_kinds_are_errors() -> None:
    async def call(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await api.call_tool("plugin", {}), await error_of(api.call_tool("mcp", {}))

    probe = Probe(call)
    tools = [Tool("plugin", fn=boom), Tool("mcp", fn=boom, type="mcp")]
    await TestHost(probe, tools=tools).say("hi")
    text, error = probe.seen[0]
    assert text == "error occurred when executing function plugin: ActionCallError: RuntimeError: no such city"
    assert error.message == "ActionCallError: Failed to execute tool mcp: no such city"


async def test_a_tool_granted_for_detail_alone_cannot_be_called() -> None:
    async def call(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        detail = await api.get_tool_detail("t")
        with pytest.raises(PermissionDeniedError):
            await api.call_tool("t", {})
        return detail["name"]

    probe = Probe(call)
    await TestHost(probe, tools=[Tool("t", operations=("detail",))]).say("hi")
    assert probe.seen == ["t"]


async def test_a_tool_knows_how_many_of_its_calls_ran_at_once() -> None:
    async def call(api: RunnerAPIProxy, _ctx: RunnerContext) -> None:
        await asyncio.gather(*(api.call_tool("t", {"n": number}) for number in range(5)))

    tool = Tool("t", fn=lambda n: n, delay=0.02)
    run = await TestHost(Probe(call), tools=[tool]).say("hi")
    assert (len(tool.calls), tool.most_at_once, run.calls.depth) == (5, 5, 1)


async def test_activate_calls_at_the_same_time_clash() -> None:
    async def call(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await asyncio.gather(
            api.call_tool("activate", {"skill_name": "pdf"}),
            error_of(api.call_tool("activate", {"skill_name": "pdf"})),
        )

    probe = Probe(call)
    run = await TestHost(probe, skills=[Skill("pdf", "Reads PDF", "# How to")]).say("hi")
    activated, error = probe.seen[0]
    assert (activated["content"], activated["activated_skill_names"]) == ("# How to", ["pdf"])
    assert error.message.endswith("Concurrent run update; retry Skill activation")
    assert run.ctx["resources"]["skills"] == [{"skill_name": "pdf", "display_name": "pdf", "description": "Reads PDF"}]


async def test_knowledge_is_retrieved_and_reranked_with_normalised_scores() -> None:
    async def find(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        found = await api.retrieve_knowledge("kb", "snow in Oslo", top_k=2)
        error = await error_of(api.retrieve_knowledge("broken", "snow"))
        documents = [entry["content"][0]["text"] for entry in found] + ["x"] * 80
        return found, error, await api.invoke_rerank("rr", "snow in Oslo", documents, top_k=3)

    bases = [KnowledgeBase("kb", ["rain", Chunk("snow in Oslo", 0.1)]), KnowledgeBase("broken", error="offline")]
    probe = Probe(find)
    models = [Model("m1"), Model("rr", rerank=True)]
    await TestHost(probe, models=models, knowledge=bases).say("hi")
    found, error, ranked = probe.seen[0]
    assert [entry["distance"] for entry in found] == [0.5, 0.1]
    assert error.message == "ActionCallError: [RetrievalError/RuntimeError] [kb_id=broken] offline"
    assert (ranked[0], len(ranked)) == ({"index": 1, "relevance_score": 1.0}, 3)
    assert max(one["index"] for one in ranked) < 64


async def test_a_box_must_be_bound_before_its_tools_and_files() -> None:
    async def work(api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        unbound = await error_of(api.call_tool("exec", {"command": "ls"}))
        box = await api.acquire_box("bot-1_person_1")
        bound = await api.bind_box(box.id)
        (imported,) = await api.import_box_attachments(["attachment-0"])
        failed = await error_of(api.import_box_attachments(["attachment-1"]))
        await api.call_tool("write", {"path": f"{bound.outbox}/a.txt", "content": "hi"})
        listed = await api.call_tool("glob", {"pattern": "*", "path": bound.outbox})
        (exported,) = await api.export_box_files(listed["matches"])
        return unbound, bound, imported, failed, exported, ctx.run_id

    probe = Probe(work)
    box = Box(failing_imports=frozenset({"attachment-1"}))
    host = TestHost(probe, box=box)
    await host.say("hi", attachments=[Attachment("a.csv", "AA=="), Attachment("b.csv", "AA==")])
    unbound, bound, imported, failed, exported, run_id = probe.seen[0]
    assert unbound.message == (
        "ActionCallError: Failed to execute tool exec: Runner must bind a Box before using sandbox tools or files"
    )
    assert bound.outbox == f"/workspace/outbox/{run_id}"
    assert imported.path == f"/workspace/inbox/{run_id}-attachment-0/a.csv"
    assert failed.message == ("ActionCallError: BoxValidationError: Failed to import input attachment attachment-1")
    assert (exported.name, exported.size) == ("a.txt", 2)
    assert list(box.files) == [imported.path]


async def test_export_limits_carry_their_data_inside_the_text() -> None:
    async def work(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        bound = await api.bind_box((await api.acquire_box("k")).id)
        host.world.box.files[f"{bound.outbox}/big"] = b"x" * (10 * 1024 * 1024 + 1)
        return (
            await error_of(api.export_box_files([f"{bound.outbox}/big"])),
            await error_of(api.export_box_files(["../etc"])),
            await error_of(api.export_box_files(["/workspace/none"])),
        )

    host = TestHost(box=Box())
    probe = Probe(work)
    await host.use(probe)
    await host.say("hi")
    big, relative, missing = probe.seen[0]
    _, _, body = big.message.partition("LANGBOT_EXPORT_V1:")
    assert json.loads(body)["details"]["limit_type"] == "file_bytes"
    assert "normalized absolute" in relative.message
    assert "not found" in missing.message


async def test_files_go_out_once_with_a_completed_message() -> None:
    async def work(api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        bound = await api.bind_box((await api.acquire_box("k")).id)
        host.world.box.files[f"{bound.outbox}/a.txt"] = b"hi"
        (exported,) = await api.export_box_files([f"{bound.outbox}/a.txt"])
        yield completed(ctx, "Here", file_ids=[exported.id])
        yield completed(ctx, "Again", file_ids=[exported.id])

    host = TestHost(box=Box())
    await host.use(Probe(work))
    run = await host.say("hi")
    assert run.files == ["a.txt"]
    assert (run.status, run.error) == (
        "failed",
        "Output file does not belong to this run or has already been submitted",
    )


async def test_state_has_a_limit_and_storage_an_error_for_a_missing_key() -> None:
    async def work(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        await api.set_plugin_storage("k", b"v")
        return (
            await error_of(api.state_set("conversation", "k", "x" * 262_143)),
            await api.state_set("conversation", "k", "x" * 262_142),
            await api.state_get("conversation", "none"),
            await api.state_list("conversation"),
            [(await api.state_delete("conversation", "k"))["success"] for _ in range(2)],
            await api.get_plugin_storage("k"),
            await error_of(api.get_plugin_storage("none")),
        )

    probe = Probe(work)
    await TestHost(probe).say("hi")
    big, fits, missing, listed, deleted, stored, absent = probe.seen[0]
    assert big.message == "ActionCallError: Value size 262145 bytes exceeds limit 262144 bytes"
    assert fits == {"success": True}
    assert missing == {"value": None}
    assert listed == {"keys": ["k"], "has_more": False}
    assert deleted == [True, False]
    assert stored == b"v"
    assert absent.message == "ActionCallError: Storage with key none not found"
