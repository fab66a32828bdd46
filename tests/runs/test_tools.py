"""Which calls run in whole runs, how and beside which others, and that each has its result (D1-D3, D7, D9)."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from runner.tools import ranking
from runner.tools.offering import offered_schema, seen
from tests.host import (
    Box,
    Fault,
    Model,
    ModelRequest,
    Reason,
    Reply,
    Skill,
    Tool,
    ToolCall,
)
from tests.tools.odd_schemas import faults

from .scenes import assert_sound, broken_rules, calls, host_with, results

OBJECT: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


# D1


async def test_D1_only_what_is_granted_for_call_is_offered_and_a_call_of_the_rest_runs_nothing() -> None:
    hidden = Tool("secret", operations=("detail",))
    host = host_with(replies=[calls("secret"), "Done."], tools=[Tool("look"), hidden])
    run = await host.say("go")
    assert run.requests[0].tool_names == ["look"]
    assert hidden.calls == []
    assert "Error [unknown_tool]" in results(run)[0]
    assert run.calls.count("get_tool_detail") == 0
    await assert_sound(host, run)


@pytest.mark.parametrize("name", ["天气", "my tool", "a.b/c", "x" * 90, "🙂"])
async def test_D1_a_name_no_provider_takes_is_offered_under_an_alias_and_called_by_its_own(name: str) -> None:
    tool = Tool(name, result="sunny")

    def reply(request: ModelRequest) -> Reply:
        if any(message["role"] == "tool" for message in request.messages):
            return Reply("Done.")
        return calls(request.tool_names[0])

    host = host_with(models=[Model("m1", default=reply)], tools=[tool])
    run = await host.say("go")
    assert len(tool.calls) == 1
    assert [call.data["tool_name"] for call in run.calls.of("call_tool")] == [name]
    await assert_sound(host, run)


async def test_D1_names_that_come_out_the_same_stay_apart() -> None:
    first, second = Tool("a.b", result="dot"), Tool("a/b", result="slash")

    def reply(request: ModelRequest) -> Reply:
        done = any(message["role"] == "tool" for message in request.messages)
        return Reply("Done.") if done else calls(*request.tool_names)

    host = host_with(models=[Model("m1", default=reply)], tools=[first, second])
    run = await host.say("go")
    assert (len(first.calls), len(second.calls)) == (1, 1)
    assert ["dot" in results(run)[0], "slash" in results(run)[1]] == [True, True]
    await assert_sound(host, run)


async def test_D1_people_read_a_tools_own_name_in_notices_ledger_and_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.loop.rounds.TOOL_PATIENCE", 0.0)
    tool = Tool("天气", fn=lambda: asyncio.sleep(0.5, "sunny"))
    host = host_with(replies=[lambda request: calls(request.tool_names[0]), "Done."], tools=[tool])
    run = await host.say("go")
    alias = run.requests[0].tool_names[0]
    assert say(Notice.TOOL_RUNNING, Locale.EN_US, tool="天气") in "".join(run.deltas)
    assert [event["tool_name"] for event in run.of("tool.call.started", "tool.call.completed")] == ["天气"] * 2
    assert any("天气 1" in line for line in run.logs)
    assert not any(alias in text for text in (*run.deltas, *run.logs[-2:]))
    await assert_sound(host, run)


async def test_D1_renamed_tools_cost_no_result_before_the_first_text_and_one_line_in_all() -> None:
    plain, chinese = [
        host_with(replies=[Reply("answer", chunks=3)], tools=[Tool(f"{name}{n}") for n in range(60)])
        for name in ("tool", "工具")
    ]
    before = [(await host.say("hi")).types.index("message.delta") for host in (plain, chinese)]
    assert before[0] == before[1]
    told = [[line for line in host.runs[0].logs if "offered" in line] for host in (plain, chinese)]
    assert [len(lines) for lines in told] == [0, 1]


async def test_D1_all_that_is_noted_while_a_run_is_assembled_is_one_line_behind_the_first_text() -> None:
    far = {"properties": {"place": {"$ref": "https://schemas.example/place"}}}
    host = host_with(
        replies=[Reply("answer", chunks=3)],
        tools=[Tool("天气"), Tool("odd", parameters={"type": "array"}), Tool("far", parameters=far)],
        knowledge={"a": ["1", "2"]},
        box=Box(),
        config={"box-enabled": True, "rerank-model": "gone"},
    )
    host.fail("get_prompt", Fault.error("no prompt"))
    host.fail("get_box_status", Fault.error("no sandbox here"))
    run = await host.say("hi")
    assert run.types.index("message.delta") < run.types.index("processor.log")
    (line,) = [text for text in run.logs if not text.startswith("run: ")]
    for told in ("renamed", "left out", "changed", "gone is not granted", "sandbox: not used", "prompt could not be"):
        assert told in line
    await assert_sound(host, run)


@pytest.mark.parametrize("profile", ["standard", "small"])
async def test_L12_tools_are_converted_and_split_beside_the_event_loop_and_once(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[tuple[str, int]] = []
    convert, split = offered_schema, ranking.words

    def converted(parameters: Any) -> Any:
        work.append(("schema", threading.get_ident()))
        return convert(parameters)

    def words_of(text: str) -> Any:
        if text.startswith("finds"):
            work.append(("description", threading.get_ident()))
        return split(text)

    monkeypatch.setattr(seen, "offered_schema", converted)
    monkeypatch.setattr(ranking, "words", words_of)
    tools = [
        Tool(
            f"tool_{n}",
            description=f"finds {profile} {n} " + "things " * 300,
            parameters={"properties": {f"{profile}_{n}_{m}": {"description": "words " * 20} for m in range(14)}},
        )
        for n in range(300)
    ]
    host = host_with(replies=["ok", "ok"], tools=tools, config={"model-profile": profile})
    await host.say("find things")
    done = Counter(kind for kind, _ in work)
    assert done == Counter(schema=300) + Counter(description=300 if profile == "small" else 0)
    assert threading.get_ident() not in {thread for _, thread in work}
    await host.say("find more things")
    assert Counter(kind for kind, _ in work) == done


async def test_K3_what_is_offered_is_taken_everywhere_and_arguments_meet_the_tools_own_schema() -> None:
    parameters = {
        "properties": {"raw": True, "tags": {"type": "array"}, "城市": {"type": "string", "pattern": "^[^0-9]+$"}},
        "anyOf": [{"required": ["raw"]}, {"required": ["城市"]}],
    }
    tool = Tool("find", result="found", parameters=parameters)

    def reply(request: ModelRequest) -> Reply:
        (city,) = [name for name in request.funcs[0]["parameters"]["properties"] if name.startswith("field_")]
        done = sum(message["role"] == "tool" for message in request.messages)
        given = [{city: "7"}, {"tags": []}, {city: "北京"}]
        return Reply(tool_calls=[ToolCall("find", given[done], id=f"c{done}")]) if done < 3 else Reply("Done.")

    host = host_with(models=[Model("m1", default=reply)], tools=[tool])
    run = await host.say("go")
    offered = run.requests[0].funcs[0]
    assert faults(offered["parameters"]) == []
    assert "One of these ways: raw; field_" in offered["description"]
    assert [text.startswith("Error [invalid_arguments]") for text in results(run)] == [True, True, False]
    assert tool.calls == [{"城市": "北京"}]
    assert run.requests[0].funcs == run.requests[-1].funcs
    await assert_sound(host, run)


async def test_K3_a_tool_that_cannot_be_told_is_left_out_with_one_line() -> None:
    host = host_with(replies=["ok"], tools=[Tool("look"), Tool("odd", parameters={"type": "array"})])
    run = await host.say("hi")
    assert run.requests[0].tool_names == ["look"]
    assert [line for line in run.logs if "odd" in line] == [
        "tools left out: 'odd': its schema is not that of an object"
    ]
    await assert_sound(host, run)


# D2


async def test_D2_parallel_calls_run_together_eight_at_once_and_answer_in_call_order() -> None:
    tool = Tool("wait", fn=lambda n: asyncio.sleep(0.02 * (12 - n), f"number {n}"), parameters=OBJECT)
    reply = Reply(tool_calls=[ToolCall("wait", {"n": n}, id=f"c{n}") for n in range(12)])
    host = host_with(replies=[reply, "Done."], tools=[tool], config={"tool-execution-mode": "parallel"})
    run = await host.say("go")
    assert tool.most_at_once == 8
    assert [f"number {n}" in text for n, text in enumerate(results(run))] == [True] * 12
    await assert_sound(host, run)


async def test_D2_serial_calls_run_one_by_one_in_the_order_asked() -> None:
    order: list[str] = []

    async def work(name: str) -> str:
        order.append(f"{name} begins")
        await asyncio.sleep(0.01)
        order.append(f"{name} ends")
        return name

    tools = [Tool(name, fn=lambda name=name: work(name)) for name in ("a", "b", "c")]
    host = host_with(replies=[calls("b", "c", "a"), "Done."], tools=tools, config={"tool-execution-mode": "serial"})
    await host.say("go")
    assert order == ["b begins", "b ends", "c begins", "c ends", "a begins", "a ends"]


async def test_D2_activate_never_runs_beside_another_and_all_skills_are_activated() -> None:
    skills = [Skill(f"skill{n}", description="d", content=f"text of {n}") for n in range(3)]
    reply = Reply(tool_calls=[ToolCall("activate", {"skill_name": f"skill{n}"}, id=f"c{n}") for n in range(3)])
    host = host_with(replies=[reply, "Done."], skills=skills)
    run = await host.say("go")
    assert [f"text of {n}" in text for n, text in enumerate(results(run))] == [True] * 3
    marks = sorted((call.started, call.ended or 0) for call in run.calls.of("call_tool"))
    assert all(before[1] < after[0] for before, after in itertools.pairwise(marks))
    await assert_sound(host, run)


# D3


@pytest.mark.parametrize("arguments", ["", "{}", "null", "  "])
async def test_D3_nothing_is_no_arguments(arguments: str) -> None:
    tool = Tool("look")
    reply = Reply(tool_calls=[ToolCall("look", arguments)])
    host = host_with(replies=[reply, "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls in ([{}], []) if arguments == "null" else tool.calls == [{}]
    await assert_sound(host, run)


BROKEN = ["[1]", '"text"', "7", "true", '{"n": 1', "{n: }", '{"n": 1}}}{', "n=1", '{"n": "', "\x00", "{" * 500, "NaN"]


@pytest.mark.parametrize("arguments", BROKEN)
async def test_D3_broken_arguments_never_run_and_go_into_the_history_as_valid_json(arguments: str) -> None:
    tool = Tool("set", takes_dict=True, fn=lambda values: values, parameters=OBJECT)
    healthy = Tool("look", result="found")
    reply = Reply(tool_calls=[ToolCall("set", arguments, id="c0"), ToolCall("look", id="c1")])
    host = host_with(replies=[reply, "Done."], tools=[tool, healthy])
    run = await host.say("go")
    for values in tool.calls:  # mended by S1's rules: then the schema took it
        assert values == {"n": 1}
    told = results(run)
    assert tool.calls or ("Error [invalid_arguments]" in told[0] and '"n"' in told[0])
    assert "found" in told[-1]
    assert len(healthy.calls) == 1
    await assert_sound(host, run)


async def test_D3_arguments_against_the_schema_run_nothing_and_the_error_says_what_is_expected() -> None:
    tool = Tool("set", takes_dict=True, fn=lambda values: values, parameters=OBJECT)
    host = host_with(replies=[Reply(tool_calls=[ToolCall("set", {"n": ["x"]})]), "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == []
    assert "integer" in results(run)[0]
    await assert_sound(host, run)


# D7, D8, D9, C2


async def test_D7_each_call_is_told_as_it_happens_with_object_payloads() -> None:
    results_of = ["text", ["list"], {"a": 1}, 7, None]
    tools = [Tool(f"t{n}", result=value) for n, value in enumerate(results_of)]
    host = host_with(replies=[calls(*(tool.name for tool in tools)), "Done."], tools=tools)
    run = await host.say("go")
    assert run.dropped == []
    assert [one["tool_name"] for one in run.of("tool.call.started")] == [tool.name for tool in tools]
    finished = run.of("tool.call.completed")
    assert {one["tool_call_id"] for one in finished} == {one["tool_call_id"] for one in run.of("tool.call.started")}
    assert all(isinstance(one["result"], dict) for one in finished)


@pytest.mark.parametrize("fault", [Fault.timeout(), Fault.drop(), Fault.error(), Fault.malformed(), Fault.lost()])
async def test_D9_a_call_that_gets_no_answer_has_a_result_and_leaves_its_neighbours_alone(fault: Fault) -> None:
    host = host_with(replies=[calls("a", "b", "c"), "Done."], tools=[Tool(name, result=name) for name in "abc"])
    host.fail("call_tool", fault, nth=2)
    run = await host.say("go")
    told = results(run)
    assert len(told) == 3
    assert [text.startswith("Error [") for text in told] == [False, True, False]
    await assert_sound(host, run)


async def test_C2_ids_that_repeat_over_rounds_are_unique_in_every_request() -> None:
    looks = iter(range(10))
    tool = Tool("look", fn=lambda: next(looks))
    host = host_with(replies=[calls("look", "look", ids=False)] * 5, tools=[tool])
    host.model.say("Done.")
    run = await host.say("go")
    assert len(results(run)) == 10
    await assert_sound(host, run)


async def test_C2_a_reply_cut_by_its_length_runs_no_call_and_is_said_to_be_cut() -> None:
    tool = Tool("set", takes_dict=True, fn=lambda values: values)
    cut = Reply(tool_calls=[ToolCall("set", {"n": 1})], finish_reason="length")
    host = host_with(replies=[cut, "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == []
    assert "length limit" in results(run)[0]
    await assert_sound(host, run)


async def test_B3_skills_are_listed_only_when_they_can_be_activated_and_the_prompt_is_unchanged_without() -> None:
    config = {"date-grounding": False}
    skill = Skill("pdf", description="reads PDF files", content="how")
    plain = await host_with(config=config).say("go")
    with_skill = await host_with(config=config, skills=[skill]).say("go")
    assert plain.requests[0].system == "You are a helpful assistant."
    assert "pdf" in with_skill.requests[0].system
    assert "reads PDF files" in with_skill.requests[0].system
    assert "activate" in with_skill.requests[0].tool_names


async def test_B3_a_description_of_1024_characters_is_told_whole_and_a_longer_one_to_there() -> None:
    told = "說明" * 511 + " ."
    skills = [Skill("pdf", description=told, content="how"), Skill("xls", description=told + "…more", content="how")]
    system = (await host_with(skills=skills).say("go")).requests[0].system
    assert f"- pdf: {told}\n" in system
    assert f"- xls: {told[:-1]}…" in system


@pytest.mark.parametrize("others", [[], [Tool("activate", type="plugin")], [Tool("activate", type="mcp")]])
async def test_B3_without_the_hosts_own_activate_there_is_no_index(others: list[Tool]) -> None:
    host = host_with(skills=[Skill("pdf", description="reads PDF files", content="how")], tools=others)
    host.world.skills.tools = list  # type: ignore[method-assign]  # not granted
    run = await host.say("go")
    assert "reads PDF files" not in run.requests[0].system
    assert run.requests[0].tool_names == [tool.name for tool in others]


async def test_B3_a_model_that_takes_no_tools_reads_no_index_and_the_next_one_does() -> None:
    def blind(request: ModelRequest) -> Reply:
        return Reply(error=Reason.BAD_REQUEST if request.funcs else Reason.RATE_LIMIT)

    skill = Skill("pdf", description="reads PDF files", content="how")
    host = host_with(models=[Model("m1", default=blind), Model("m2", default="Done.")], skills=[skill])
    run = await host.say("go")
    assert [bool(request.funcs) for request in run.requests] == [True, False, True]
    assert ["reads PDF files" in request.system for request in run.requests] == [True, False, True]
    await assert_sound(host, run)


@pytest.mark.parametrize("text", [" ", "\n\n", "\t"])
async def test_C2_white_space_beside_a_call_is_no_text(text: str) -> None:
    host = host_with(replies=[Reply(text, tool_calls=[ToolCall("look")]), "Done."], tools=[Tool("look")])
    run = await host.say("go")
    assert broken_rules(run) == []
