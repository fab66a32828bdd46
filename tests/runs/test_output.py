"""C1, C2, C4, C6: what comes as a stream, what is made of it, and what the Host gets to show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult

from components.runner.default import DefaultRunner
from config.locales import Locale
from config.notices import Notice, say
from runner.channel.outbox import BASE_PAUSE
from tests.host import Fault, Model, Reason, Reply, RunRecord, TestHost, Tool, ToolCall, full_manifest

from .scenes import assert_sound, broken_rules, host_with, rows

# What the Host gets to show (C6). Pauses are looked at on the clock the runner itself uses, never on a wall clock.

FRAME = 1024 * 1024


class Clocked(DefaultRunner):
    """The real Runner, which also keeps when each of its snapshots went out (seconds of the loop's clock)."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    async def run(self, ctx: RunnerContext) -> AsyncGenerator[RunnerResult, None]:  # type: ignore[override]
        async for result in super().run(ctx):
            if result.type == "message.delta":
                self.times.append(asyncio.get_running_loop().time())
            yield result


async def streamed(text: str, chunks: int, delay: float, **given: object) -> tuple[TestHost, RunRecord]:
    host = host_with(replies=[Reply(text, chunks=chunks, chunk_delay=delay)], **given)
    run = await host.say("go")
    await assert_sound(host, run)
    return host, run


async def test_C6_snapshots_are_cumulative_numbered_and_not_final_and_the_last_is_the_message() -> None:
    _, run = await streamed("one two three four five six", 27, 0.04)
    deltas = [data["chunk"] for data in run.of("message.delta")]
    assert len(deltas) >= 2
    assert [one["msg_sequence"] for one in deltas] == list(range(1, len(deltas) + 1))
    assert all(one["content"] == one["all_content"] and not one["is_final"] for one in deltas)
    assert deltas[-1]["content"] == run.final_text == "one two three four five six"
    assert run.types[-2:] == ["message.completed", "run.completed"]
    assert "message" not in run.of("run.completed")[0]


async def test_C6_between_two_snapshots_lie_at_least_300_milliseconds_but_for_the_last_one() -> None:
    runner = Clocked()
    host = TestHost(runner=runner, manifest=full_manifest(), replies=[Reply("x" * 60, chunks=60, chunk_delay=0.03)])
    await host.say("go")
    gaps = [late - early for early, late in zip(runner.times, runner.times[1:], strict=False)]
    assert len(gaps) >= 2
    assert min(gaps[:-1]) >= BASE_PAUSE - 0.01


async def test_C6_the_first_words_go_out_before_the_answer_is_complete() -> None:
    host = host_with(replies=[Reply(chunks=["First ", "last"], chunk_delay=0.1)])
    run = host.start("go")
    delta = await run.until_result("message.delta")
    assert delta["chunk"]["content"] == "First "
    assert run.completed == []
    await run.wait()


async def test_C6_a_slow_host_gets_the_newest_snapshot_and_no_queue_of_old_ones() -> None:
    _, run = await streamed("word " * 400, 400, 0.002, result_seconds=0.25)
    assert len(run.deltas) <= 8
    assert run.final_text == "word " * 400


@pytest.mark.parametrize("characters", [60_000, 100_000, 400_000])
async def test_C6_a_long_chinese_answer_stays_under_a_frame_and_is_cut_only_beyond_it(characters: int) -> None:
    host, run = await streamed("天" * characters, 200, 0.0)
    assert run.final_text is not None
    assert max(len(json.dumps(result)) for result in run.results) < FRAME
    if characters <= 100_000:
        assert run.final_text == "天" * characters
    else:
        assert run.final_text.endswith(say(Notice.TRANSPORT_LIMIT_NOTE, Locale.EN_US))
        assert run.final_text.count("天") > 100_000
    assert run.status == "completed"
    assert rows(host)[-1] == ("assistant", run.final_text)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("text", ["Short.", "word " * 300])
async def test_C6_on_any_adapter_the_person_sees_the_whole_answer_once(streaming: bool, text: str) -> None:
    _, run = await streamed(text, 50, 0.01, streaming_adapter=streaming)
    assert [card.text for card in run.cards] == [text]
    assert run.cards[0].final


@pytest.mark.parametrize("streaming", [True, False])
async def test_C6_a_run_with_tools_is_one_card_with_all_its_text(streaming: bool) -> None:
    replies = [Reply(f"Step {n}.", tool_calls=[ToolCall("look")], chunks=3, chunk_delay=0.1) for n in range(3)]
    host = host_with(replies=[*replies, "Done."], tools=[Tool("look", delay=0.1)], streaming_adapter=streaming)
    run = await host.say("go")
    assert [card.text for card in run.cards] == ["Step 0.\n\nStep 1.\n\nStep 2.\n\nDone."]
    await assert_sound(host, run)


async def test_C6_an_answer_that_is_empty_after_tools_is_a_visible_sentence() -> None:
    host = host_with(replies=[Reply(tool_calls=[ToolCall("look")]), Reply("")], tools=[Tool("look")])
    run = await host.say("go")
    assert run.status in ("completed", "failed")
    if run.status == "completed":
        assert run.final_text
        assert run.final_text.strip()
        assert run.answer == run.final_text
    await assert_sound(host, run)


async def test_C6_a_passing_notice_stands_in_snapshots_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.loop.rounds.TOOL_PATIENCE", 0.05)
    reply = Reply("Looking.", tool_calls=[ToolCall("look")])
    host = host_with(replies=[reply, Reply("Done.", delay=0.5)], tools=[Tool("look", delay=0.7)])
    run = await host.say("go")
    notice = say(Notice.TOOL_RUNNING, Locale.EN_US, tool="look")
    assert any(notice in text for text in run.deltas)
    assert run.final_text == "Looking.\n\nDone."
    assert notice not in run.deltas[-1]
    await assert_sound(host, run)


async def test_C6_without_notices_wanted_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.loop.rounds.TOOL_PATIENCE", 0.02)
    reply = Reply("Looking.", tool_calls=[ToolCall("look")])
    tools = [Tool("look", delay=0.4)]
    host = host_with(replies=[reply, "Done."], tools=tools, config={"progress-notices": False})
    run = await host.say("go")
    assert all(text in ("Looking.", "Looking.\n\nDone.") for text in run.deltas)


async def test_C6_text_that_looks_like_the_runners_own_or_breaks_json_comes_through_unchanged() -> None:
    text = 'quote " backslash \\ null-like \\u0000 {"role": "system"} </s> 🙂 é\u2028\u2029 end'
    _, run = await streamed(text, len(text), 0.0)
    assert run.final_text == text


@pytest.mark.parametrize("chunks", [["half \ud83d of it"], ["smile \ud83d", "\ude42 of it"]])
async def test_B5_half_a_character_of_an_answer_reaches_neither_history_nor_model(chunks: list[str]) -> None:
    host = host_with(replies=[Reply(chunks=chunks), "Next."])
    run = await host.say("go")
    assert run.final_text is not None
    run.final_text.encode("utf-8")
    nxt = await host.say("again")
    assert broken_rules(nxt) == []


@pytest.mark.parametrize("text", ["half \ud83d of it", "zero\x00byte"])
async def test_B4_half_a_character_of_a_message_reaches_no_model(text: str) -> None:
    run = await host_with(replies=["Next."]).say(text)
    assert broken_rules(run) == []
    assert run.final_text == "Next."


async def test_C6_the_last_snapshot_equals_the_message_after_an_error_too() -> None:
    broken = Reply(chunks=["Well, ", "x"], error=Reason.CONNECTION, error_after=1, chunk_delay=0.1)
    run = await host_with(replies=[broken]).say("go")
    assert run.deltas
    assert run.deltas[-1] == run.final_text


# What comes as a stream, and what is made of it (C1, C2, C4, C6).


def chunk(text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"chunk": {"role": "assistant", "content": text, **more}}


def fragment(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return chunk(tool_calls=[call])


USAGE = {"usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}


async def test_C2_text_and_usage_that_come_after_is_final_are_read() -> None:
    host = host_with(
        replies=[Reply(events=[chunk("Hel"), chunk("lo", is_final=True), chunk(" there", is_final=True), USAGE])]
    )
    run = await host.say("go")
    assert run.final_text == "Hello there"
    assert run.usage is not None
    assert run.usage["total_tokens"] == 8
    await assert_sound(host, run)


async def test_C2_a_stream_without_any_final_flag_loses_no_tail() -> None:
    host = host_with(replies=[Reply(events=[chunk("a"), chunk("b"), chunk("c")])])
    run = await host.say("go")
    assert run.final_text == "abc"


async def test_C2_white_space_of_every_chunk_is_kept() -> None:
    pieces = ["  two", " words", "\n\n", "\tlist\n", "  - x  ", "\n"]
    host = host_with(replies=[Reply(chunks=pieces)])
    run = await host.say("go")
    assert run.final_text == "".join(pieces)
    await assert_sound(host, run)


async def test_C2_fragments_of_calls_that_take_turns_are_put_together_by_id() -> None:
    tools = [Tool("a", takes_dict=True, fn=lambda values: values), Tool("b", takes_dict=True, fn=lambda values: values)]
    calls = [ToolCall("a", {"text": "first call"}, id="x", pieces=5), ToolCall("b", {"n": 2}, id="y", pieces=4)]
    host = host_with(replies=[Reply(tool_calls=calls, interleaved=True), "Done."], tools=tools)
    run = await host.say("go")
    assert (tools[0].calls, tools[1].calls) == ([{"text": "first call"}], [{"n": 2}])
    await assert_sound(host, run)


async def test_C2_two_calls_of_one_tool_with_equal_arguments_both_run() -> None:
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    same = [ToolCall("look", {"n": 1}, id=f"c{n}") for n in range(2)]
    host = host_with(replies=[Reply(tool_calls=same), "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == [{"n": 1}, {"n": 1}]
    await assert_sound(host, run)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([fragment("", "look", '{"n": 1}'), fragment("", "look", '{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("", "look", '{"n"'), fragment("", "look", ": 1}")], [{"n": 1}]),
        ([fragment("c", "look", '{"n": 1}{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("c", "look", '{"n": 1}'), fragment("c", "look", '{"n": 2}')], [{"n": 1}, {"n": 2}]),
        ([fragment("c", "look", ""), fragment("d", "look", "")], [{}, {}]),
    ],
)
async def test_C2_ids_that_are_missing_or_the_same_lose_no_call(events: list[Any], expected: list[Any]) -> None:
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    host = host_with(replies=[Reply(events=events), "Done."], tools=[tool])
    run = await host.say("go")
    assert tool.calls == expected
    await assert_sound(host, run)


async def test_C2_where_streaming_is_not_granted_the_model_is_invoked_and_the_answer_is_the_same() -> None:
    model = Model("m1", operations=frozenset({"invoke", "count_tokens"}))
    model.say(Reply("Looking. ", tool_calls=[ToolCall("look", {"n": 1})]), "Here.")
    tool = Tool("look", takes_dict=True, fn=lambda values: values)
    host = host_with(models=[model], tools=[tool])
    run = await host.say("go")
    assert run.calls.count("invoke_llm_stream") == 0
    assert tool.calls == [{"n": 1}]
    assert run.final_text == "Looking. \n\nHere."
    await assert_sound(host, run)


async def test_C2_an_answer_cut_by_its_length_says_so_in_the_answer() -> None:
    host = host_with(replies=[Reply("Once upon a", finish_reason="length")])
    run = await host.say("go")
    assert run.final_text == f"Once upon a\n\n{say(Notice.LENGTH_LIMIT_NOTE, Locale.EN_US)}"
    await assert_sound(host, run)


@pytest.mark.parametrize(("setting", "sent"), [(True, True), (False, None)])
async def test_C4_remove_think_is_sent_only_when_set(setting: bool, sent: bool | None) -> None:
    run = await host_with(config={"remove-think": setting}).say("go")
    assert [request.remove_think for request in run.requests] == [sent]


async def test_C2_thoughts_shown_in_the_answer_do_not_go_back_to_the_model() -> None:
    host = host_with(replies=[Reply("The answer.", reasoning="secret thought"), "Next."])
    await host.say("go")
    run = await host.say("more")
    assert "secret thought" not in run.requests[-1].text
    assert "The answer." in run.requests[-1].text
    await assert_sound(host, run)


async def test_C2_a_thought_without_an_answer_counts_as_no_answer_of_that_model() -> None:
    models = [Model("m1", replies=[Reply(reasoning="hmm")]), Model("m2", replies=["Here."])]
    run = await host_with(models=models, config={"remove-think": True}).say("go")
    assert run.final_text == "Here."


async def test_C6_text_before_a_tool_call_stays_readable_above_the_answer() -> None:
    host = host_with(replies=[Reply("Let me look.", tool_calls=[ToolCall("look")]), "Found it."], tools=[Tool("look")])
    run = await host.say("go")
    assert run.final_text == "Let me look.\n\nFound it."
    assert len(run.cards) == 1
    assert rows(host)[-1] == ("assistant", "Let me look.\n\nFound it.")
    await assert_sound(host, run)


async def test_C2_items_of_a_stream_that_nobody_can_read_make_the_next_model_answer() -> None:
    models = [Model("m1", replies=["never"]), Model("m2", replies=["Here."])]
    for reply in ({"chunk": "text"}, {"chunk": {"role": 3}}, {"chunk": {"role": "assistant", "tool_calls": [{}]}}):
        host = host_with(models=[Model("m1"), Model("m2", replies=["Here."])])
        host.fail("invoke_llm_stream", Fault.malformed(reply))
        run = await host.say("go")
        assert run.final_text == "Here."
        await assert_sound(host, run)
    assert len(models) == 2
