"""What others hand to this door: plain dicts, objects of their own, and what makes no sense (S0)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool

from local import Error, Finish, FinishedCall, Message
from local.provider import complete
from local.taking import read_messages
from tests.written import CITY, tags

from .scripted import Scripted, parts_of, text_of, types_of

WEATHER = {"name": "get_weather", "description": "Tells the weather of a city.", "parameters": CITY}
CALL = tags("get_weather", city="Oslo")


class Stranger:
    """A request with no more than the members that everybody has to bring."""

    def __init__(self, *messages: object, tools: object = (WEATHER,), result: object = "sunny", **members: Any) -> None:
        self.messages = messages or ({"role": "user", "content": "How is the weather in Oslo?"},)
        self.offered = tools
        self.result = result
        self.calls: list[tuple[str, dict[str, Any]]] = []
        for member, value in members.items():
            setattr(self, member, value)

    @property
    def tools(self) -> Any:
        return self.offered() if callable(self.offered) else self.offered

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> object:
        self.calls.append((name, dict(arguments)))
        return self.result


class Engine:
    """An engine that only generates, as plain text."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[Any] = []

    async def generate(self, request: Any) -> Any:
        self.requests.append(request)
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        return reply(request) if callable(reply) else reply


async def test_S0_generate_may_return_the_text_itself_and_optional_members_may_be_missing() -> None:
    request = Stranger()
    parts = await parts_of(Engine(CALL, "It is sunny."), request)
    assert types_of(parts) == ["message-start", "tool-call", "tool-result", "message-start", "text", "finish"]
    assert text_of(parts) == "It is sunny."
    assert request.calls == [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "get_weather", "description": "", "inputSchema": CITY},
        {"type": "function", "function": WEATHER},
        SimpleNamespace(name="get_weather", description=None, parameters=CITY),
        LLMTool(name="get_weather", human_desc="", description="", parameters=dict(CITY), func=print),
    ],
    ids=["descriptor", "openai", "object", "sdk"],
)
async def test_S0_tools_may_have_any_usual_shape(tool: object) -> None:
    request, engine = Stranger(tools=[tool]), Engine(CALL, "Sunny.")
    await parts_of(engine, request)
    assert request.calls == [("get_weather", {"city": "Oslo"})]
    assert engine.requests[0].tools[0].parameters == CITY


@pytest.mark.parametrize("reply", [None, 42, {"text": None}, ["x"]])
async def test_S0_an_engine_that_returns_no_text_failed(reply: object) -> None:
    parts = await parts_of(Engine(reply), Stranger())
    assert types_of(parts) == ["message-start", "error"]
    assert isinstance(parts[-1], Error)
    assert "no text" in parts[-1].text


async def test_S0_what_an_engine_tells_besides_text_is_no_piece_of_the_reply() -> None:
    def junk(request: Any) -> str:
        for piece in (None, 5, b"x", "", "Sun", "ny."):
            request.on_token(piece)
        return "Sunny.\n"

    assert text_of(await parts_of(Engine(junk), Stranger())).strip() == "Sunny."


async def test_S0_an_engine_that_trims_what_it_returns_has_said_the_same() -> None:
    def trimmed(request: Any) -> str:
        request.on_token("\n Sunny. \n")
        return "Sunny."

    assert text_of(await parts_of(Engine(trimmed), Stranger())).strip() == "Sunny."


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"state": "available"}, "available"),
        ("available", "available"),
        ({"state": "needs_download", "bytes": 5, "cached": True}, "needs-download"),
        ({"state": "needs-download"}, "needs-download"),
        ({"state": "downloading", "progress": 0.5}, "downloading"),
        ({"state": "unavailable", "reason": "no GPU"}, "unavailable"),
        (None, "unavailable"),
        (42, "unavailable"),
    ],
)
async def test_S0_availability_is_read_in_the_shape_of_the_page_too(said: object, state: str) -> None:
    class Says(Engine):
        async def availability(self) -> object:
            return said

    found = await complete(Says("x")).availability()  # type: ignore[arg-type]
    assert found.state == state


@pytest.mark.parametrize("tools", [lambda: 1 / 0, [42]], ids=["raise", "junk"])
async def test_S3_a_run_whose_tools_cannot_be_read_ends_with_an_error(tools: object) -> None:
    parts = await parts_of(Engine("x"), Stranger(tools=tools))
    assert types_of(parts) == ["error"]


async def test_S3_tools_that_cannot_be_read_any_more_end_the_run_with_an_error() -> None:
    reads = iter([[WEATHER]] * 3)
    parts = await parts_of(Engine(CALL, "x"), Stranger(tools=lambda: next(reads)))
    assert types_of(parts)[-1] == "error"


async def test_S3_the_agent_of_a_request_is_optional_and_so_are_its_members() -> None:
    assert text_of(await parts_of(Engine("Hi."), Stranger(agent=None))) == "Hi."
    parts = await parts_of(Engine(CALL), Stranger(agent=SimpleNamespace(max_steps=1)), max_steps=5)
    assert parts[-1] == Finish("max-steps")
    with pytest.raises(ValueError, match="number of steps"):
        await parts_of(Engine(CALL), Stranger(agent={"max_steps": "many"}))


async def test_S3_a_stop_of_a_thread_ends_the_run() -> None:
    stop = threading.Event()
    running = asyncio.create_task(parts_of(Scripted(asleep), Stranger(stop=stop)))
    await asyncio.sleep(0.05)
    stop.set()
    assert (await running)[-1] == Finish("aborted")
    with pytest.raises(ValueError, match="event"):
        await parts_of(Engine("x"), Stranger(stop="now"))


async def asleep(request: object) -> str:
    await asyncio.sleep(30)
    return ""


HISTORIES: dict[str, Sequence[object]] = {
    "ours": [
        Message("user", "Oslo?"),
        Message("assistant", "", [FinishedCall("get_weather", {"city": "Oslo"}, "sun")]),
    ],
    "turns": [
        {"role": "user", "content": "Oslo?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sun"},
    ],
    "parts": [
        {"role": "user", "content": [{"type": "text", "text": "Oslo?"}]},
        {"role": "assistant", "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "result": "sun"}]},
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
async def test_S3_a_history_that_ends_on_a_tool_result_is_gone_on_with_in_any_shape(history: Sequence[object]) -> None:
    engine = Engine("Sunny.")
    await parts_of(engine, Stranger(*history))
    turns = engine.requests[0].messages
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "user"]
    assert turns[1].content == CALL
    assert "sun" in turns[2].content
    assert "next step" in turns[3].content


def test_S3_a_result_without_its_call_is_kept_as_one_of_an_unknown_call() -> None:
    read = read_messages([{"role": "user", "content": "x"}, {"role": "tool", "name": "look", "content": "y"}])
    assert read == (Message("user", "x", []), Message("assistant", "", [FinishedCall("look", {}, "y")]))


def test_S3_a_call_whose_result_never_came_is_left_out() -> None:
    calls = [{"id": "1", "function": {"name": "a", "arguments": "{"}}, {"id": "2", "function": {"name": "b"}}]
    read = read_messages([{"role": "assistant", "tool_calls": calls}, {"role": "tool", "name": "b", "content": "y"}])
    assert read == (Message("assistant", "", [FinishedCall("b", {}, "y")]),)


def test_S3_a_message_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="user, assistant or tool"):
        read_messages([{"role": "wizard", "content": "x"}])
