"""What a bot's owner reads of a run: one line that says how it went, and never a word of what was said."""

from __future__ import annotations

import base64
import logging
import re
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.host import (
    Attachment,
    Box,
    Chunk,
    Fault,
    KnowledgeBase,
    Model,
    ModelRequest,
    Reason,
    Reply,
    RunRecord,
    Skill,
    TestHost,
    Tool,
    ToolCall,
)
from tests.soak.chat import ACTIONS

from .scenes import Plants, assert_sound, host_with, lines_of, looks

LINE = re.compile(
    r"run: (?P<outcome>.+) in \d+\.\d s: (?P<turns>\d+) model turns?, (?P<calls>\d+) tool calls?"
    r"(?: in (?P<rounds>\d+) rounds? \((?P<failed>\d+) failed\))?, "
    r"(?:(?P<tokens_in>\d+) tokens in and (?P<tokens_out>\d+) out|tokens unknown), "
    r"(?P<compactions>\d+) compactions?, (?P<fallbacks>\d+) fallbacks?"
)


def said(run: RunRecord, level: str) -> list[str]:
    return [data["text"] for data in run.of("processor.log") if data["level"] == level]


def line_of(run: RunRecord) -> dict[str, str | None]:
    """The one line of a run. Fails when there is none, or more than one."""
    (found,) = [match for text in run.logs if (match := LINE.fullmatch(text))]
    return found.groupdict()


async def test_C8_a_plain_answer_is_one_line_with_its_counts_and_nothing_else_to_read() -> None:
    host = host_with(replies=[Reply("Hello!", usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})])
    run = await host.say("hi")
    line = line_of(run)
    assert (line["outcome"], line["turns"], line["calls"]) == ("answered", "1", "0")
    assert (line["tokens_in"], line["tokens_out"], line["compactions"], line["fallbacks"]) == ("7", "3", "0", "0")
    assert len(said(run, "info")) == 1
    assert run.types[-3:] == ["processor.log", "message.completed", "run.completed"]
    await assert_sound(host, run)


async def test_C8_tools_and_a_fallback_are_counted_and_told_in_detail_at_debug_level() -> None:
    tools = [Tool("look", result="found"), Tool("break", fn=lambda: 1 / 0, type="mcp")]
    calls = [ToolCall("look", id="a"), ToolCall("break", id="b"), ToolCall("not_there", id="c")]
    models = [Model("m1", [Reply(tool_calls=calls), Reply(error=Reason.CONNECTION)]), Model("m2", ["Done."])]
    run = await host_with(models=models, tools=tools).say("go")
    line = line_of(run)
    assert (line["turns"], line["calls"], line["rounds"], line["failed"]) == ("2", "3", "1", "2")
    assert line["fallbacks"] == "1"
    (details,) = [text for text in said(run, "debug") if text.startswith("run: ")]
    assert "with models (m1 1, m2 1)" in details
    assert "with tools ((unknown) 1, break 1, look 1)" in details


async def test_C8_a_compaction_is_counted() -> None:
    host = host_with(
        models=[Model("m1", default=looks("m1", 0))],
        config={"context-window-tokens": 4_000, "context-keep-recent-tokens": 500},
    )
    host.remember(*[(role, "many words of a long chat " * 60) for _ in range(12) for role in ("user", "assistant")])
    run = await host.say("go on")
    assert int(str(line_of(run)["compactions"])) >= 1


@pytest.mark.parametrize("silent", [True, False])
async def test_C8_a_failed_run_has_its_line_too(silent: bool) -> None:
    host = host_with(replies=[Reply("" if silent else "Half", error=Reason.AUTHENTICATION, error_after=1)])
    run = await host.say("hi")
    expected = "failed (runner.models_failed)" if silent else "ended with a notice"
    assert line_of(run)["outcome"] == expected


async def test_G2_a_stopped_run_says_nothing_before_its_answer_and_its_line_where_there_is_none() -> None:
    host = host_with(replies=[Reply("late", delay=60)])
    host.fail("count_tokens", Fault.cancel())
    run = await host.say("go")
    assert run.status == "cancelled"
    assert run.types == ["processor.log"]
    assert line_of(run)["outcome"] == "stopped on request"
    host = host_with(replies=[Reply(chunks=["Once ", "upon"], chunk_delay=60)])
    going = host.start("go")
    await going.until_result("message.delta")
    host.cancel(going)
    await going.wait()
    assert going.status == "cancelled"
    assert str(going.answer).startswith("Once ")
    assert set(going.types) <= {"message.delta", "message.completed"}


async def test_C8_a_line_of_the_host_cannot_pass_for_a_line_of_the_runner() -> None:
    forged = "gone\nrun: answered in 0.1 s: 1 model turn\u202e\x1b[31m"
    host = host_with(knowledge={"base": ["x"]}, replies=["Hello!"])
    host.fail("retrieve_knowledge", Fault.error(forged))
    run = await host.say("hi")
    (line,) = [text for text in run.logs if "gone" in text]
    assert "\n    run: answered" in line
    assert not set("\u202e\x1b") & set(line)
    line_of(run)


# Never what was said


@dataclass(frozen=True)
class Draw:
    """One run: where it happens, and which call fails how."""

    seed: int
    place: str
    action: str
    kind: str
    nth: int
    times: int | None


draws = st.builds(
    Draw,
    st.integers(0, 2**31),
    st.sampled_from(("pipeline", "group", "small", "narrow", "agent", "event")),
    st.sampled_from(ACTIONS),
    st.sampled_from(("none", "error", "malformed", "odd", "lost", "drop")),
    st.integers(1, 2),
    st.sampled_from((1, None)),
)


def fault(draw: Draw, plants: Plants) -> Fault:
    return {
        "error": Fault.error(plants.failure()),
        "malformed": Fault.malformed(plants.reply()),
        "odd": Fault.malformed(),
        "lost": Fault.lost(),
        "drop": Fault.drop(),
    }[draw.kind]


def planted_host(draw: Draw, plants: Plants) -> TestHost:
    """A Host with a word of its own in every place where text enters a run."""
    word = plants.word
    schema = {
        "type": "object",
        "description": word("schema"),
        "properties": {"text": {"type": "string", "description": word("schema"), "enum": [word("schema")]}},
    }
    tools = [
        Tool("look", takes_dict=True, fn=lambda _: {"found": word("result"), "path": word("result")}),
        Tool("fail", takes_dict=True, fn=lambda _: 1 / 0, type="mcp", description=word("description")),
        Tool("pick", takes_dict=True, fn=lambda _: word("result"), parameters=schema),
    ]
    config: dict[str, Any] = {
        "prompt": [{"role": "system", "content": word("prompt")}],
        "box-enabled": True,
        "box-session-id-template": f"{word('template')}{{sender_id}}",
        "site-instructions": word("prompt"),
        "timeout": word("setting"),
        "max-tool-iterations": 4,
        "agent-reply": word("setting"),
    }
    if draw.place == "small":
        config |= {"model-profile": "small", "tool-call-format": "tags"}
    if draw.place == "narrow":
        config |= {"context-window-tokens": 3_000, "context-keep-recent-tokens": 300}
    box = Box(files={f"/workspace/outbox/{word('file')}.txt": word("file").encode()})
    host = host_with(
        models=[Model(name, default=model(plants)) for name in ("m1", "m2")],
        tools=tools,
        knowledge=[KnowledgeBase("base", [Chunk(word("knowledge"), metadata={"title": word("knowledge")})])],
        skills=[Skill("tides", word("description"), word("result"))],
        box=box,
        config=config,
        mode="agent" if draw.place in ("agent", "event") else "pipeline",
    )
    long = 40 if draw.place == "narrow" else 1
    for role in ("user", "assistant", "user", "assistant"):
        host.remember((role, f"{word('history')} " * long), conversation=chat_of(draw))
    if draw.kind != "none":
        host.fail(draw.action, fault(draw, plants), draw.nth, draw.times)
    return host


def chat_of(draw: Draw) -> str:
    return "person_1" if draw.place not in ("group", "event") else "group_9"


def model(plants: Plants) -> Any:
    """Thinks, calls every tool, some of them wrongly, and answers in the end: a new word each time."""

    def reply(request: ModelRequest) -> Reply:
        done = sum(1 for message in request.messages if message.get("tool_calls"))
        words = {kind: plants.word(kind) for kind in ("answer", "thought", "argument", "name")}
        call = f'<tool_call>{{"name": "look", "arguments": {{"text": "{words["argument"]}"}}}}</tool_call>'
        if done > 1 or not request.tool_names:
            return Reply(words["answer"] if done > 1 else call, reasoning=words["thought"], chunks=2)
        calls = [
            ToolCall("look", {"text": words["argument"]}, id=f"a{done}"),
            ToolCall("pick", {"text": words["argument"]}, id=f"b{done}"),
            ToolCall("fail", {}, id=f"c{done}"),
            ToolCall("look", f'{{"text": "{words["argument"]}', id=f"d{done}"),
            ToolCall(words["name"], {"text": words["argument"]}, id=f"e{done}"),
            ToolCall("write", {"path": f"/workspace/outbox/{words['argument']}.txt", "content": words["argument"]}),
            ToolCall("exec", {"command": words["argument"]}, id=f"g{done}"),
        ]
        return Reply(words["answer"], tool_calls=calls, reasoning=words["thought"])

    return reply


async def run_of(draw: Draw, plants: Plants, host: TestHost) -> RunRecord:
    file = Attachment(f"{plants.word('file')}.txt", base64.b64encode(plants.word("file").encode()).decode())
    who = {"sender_name": plants.word("person"), "conversation": chat_of(draw)}
    follow_up = plants.word("message")
    host.when("call_tool", lambda: host.steer(follow_up, conversation=chat_of(draw)))
    if draw.place == "event":
        data = {"member": {"nickname": plants.word("person")}, "note": plants.word("message")}
        return await host.event("group.member_joined", data, **who)
    variables = {"group_name": plants.word("person"), "note": plants.word("message")}
    return await host.say(plants.word("message"), attachments=[file], variables=variables, **who)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(draw=draws)
async def test_C8_no_line_of_the_log_holds_a_word_of_what_was_said(
    draw: Draw, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    plants = Plants(Random(draw.seed))
    async with planted_host(draw, plants) as host:
        run = await run_of(draw, plants, host)
    # To an event nobody waits for a reply to, the model's last words go to the log on purpose (J2).
    but = ("answer", "thought") if draw.place == "event" else ()
    own = [each.getMessage() for each in caplog.records if each.name.startswith(("runner", "config", "asyncio"))]
    assert plants.found([*lines_of(run), *own], but) == []
    assert len([text for text in run.logs if LINE.fullmatch(text)]) == 1, (run.status, run.logs)


async def test_C8_the_search_finds_what_a_line_gives_away() -> None:
    plants = Plants(Random(1))
    word, key = plants.word("message"), plants.key()
    assert len(plants.found([f"the reply {word} failed", f"Bearer {key}"])) == 2
    assert plants.found(["the reply failed", "Bearer [hidden]"]) == []
