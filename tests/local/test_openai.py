"""Sk: a server by its address, typed functions as tools, and the program of the documentation."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from local import Available, Error, Functions, GenerateRequest, OpenAIProvider, ToolFailed, Unavailable
from local.__main__ import main
from local.openai_reply import Lines, Reply, ServerFailed, words
from tests.e2e.served import ModelServed

from .scripted import asking, parts_of

ROOT = Path(__file__).parents[2]


def event(text: str, **choice: object) -> str:
    return "data: " + json.dumps({"choices": [{"delta": {"content": text}, **choice}]}) + "\n\n"


def whole(text: str) -> str:
    return event(text) + event("", finish_reason="stop") + "data: [DONE]\n\n"


class Server(ModelServed):
    """Answers with what is written down, one after the other: a body, or a status with a body."""

    def __init__(self, *script: str | tuple[int, str], kind: str = "text/event-stream") -> None:
        super().__init__()
        self.script, self.kind = list(script), kind
        self.heard: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.list_status = 200

    async def models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "tiny"}, {"id": "large"}]}, status=self.list_status)

    async def chat(self, request: web.Request) -> web.Response:
        self.heard.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        said = self.script.pop(0)
        status, body = said if isinstance(said, tuple) else (200, said)
        return web.Response(status=status, body=body.encode(), content_type=self.kind)


async def generated(server: Server, *, model: str = "tiny", key: str = "", schema: Any = None) -> tuple[str, list[str]]:
    pieces: list[str] = []
    request = GenerateRequest("Be kind.", [], [], asyncio.Event(), pieces.append, schema)
    result = await OpenAIProvider(server.base_url, model, key).generate(request)
    return result.text, pieces


async def test_Sk_a_reply_comes_as_it_is_written_and_the_key_goes_along() -> None:
    with Server(event("Hel") + whole("lo")) as server:
        assert await generated(server, key="sk-1") == ("Hello", ["Hel", "lo"])
    assert server.keys == ["Bearer sk-1"]
    assert server.heard[0]["messages"] == [{"role": "system", "content": "Be kind."}]


@pytest.mark.parametrize(
    "body",
    [
        whole("a\u2028b").replace("\n", "\r\n"),
        ": comment\n\nevent: x\n" + whole("a\u2028b").replace("data: ", "data:"),
        'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n' + whole("a\u2028b"),
        whole("a\u2028b").replace("\n\n", '\n\ndata: {"choices":null,"usage":null}\n\n', 1),
        event("a\u2028b") + "data: [DONE]",
    ],
)
async def test_Sk_every_way_to_write_a_stream_gives_the_same_text(body: str) -> None:
    with Server(body.replace("\\u2028", "\u2028")) as server:
        assert (await generated(server))[0] == "a\u2028b"


def test_Sk_a_stream_reads_the_same_however_it_is_cut() -> None:
    data = whole("één").replace("\n", "\r\n").replace("\\u00e9", "é").encode()
    for size in range(1, 12):
        lines, reply = Lines(), Reply()
        for at in range(0, len(data), size):
            for line in lines.take(data[at : at + size]):
                reply.take(line)
        assert (reply.text, reply.ended) == ("één", True)


async def test_Sk_a_server_that_does_not_stream_is_read_whole() -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}, indent=1)
    with Server(body, kind="application/json") as server:
        assert await generated(server) == ("Hi", ["Hi"])


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (event("Hel"), "breaks off"),
        ('data: {"error": {"message": "out of\\u001b[2J memory"}}\n\n', "out of[2J memory"),
        ("data: <html>\n\n", "no reply"),
        ((401, "{}"), "MODEL_API_KEY"),
        ((404, '{"error": "no such model"}'), "no model 'other' but tiny, large"),
        ((500, "boom"), "server's own log"),
        ((302, ""), "answers 302"),
    ],
)
async def test_Sk_what_goes_wrong_is_a_sentence_with_the_next_step(said: Any, told: str) -> None:
    with Server(said) as server, pytest.raises(ServerFailed, match=re.escape(told)):
        await generated(server, model="other")


async def test_Sk_a_server_that_takes_no_schema_is_asked_without_one() -> None:
    with Server((400, "response_format"), whole("{}")) as server:
        assert (await generated(server, schema={"type": "object"}))[0] == "{}"
    assert ["response_format" in body for body in server.heard] == [True, False]


async def test_Sk_a_server_that_is_down_or_wants_a_key_is_unavailable_and_says_why() -> None:
    with Server() as server:
        provider = OpenAIProvider(server.base_url, "tiny")
        assert await provider.availability() == Available()
        server.list_status = 401
        refused = await provider.availability()
    down = await provider.availability()
    assert isinstance(refused, Unavailable) and "MODEL_API_KEY" in refused.reason
    assert isinstance(down, Unavailable) and "start the server" in down.reason
    last = (await parts_of(provider, asking("Hi")))[-1]
    assert isinstance(last, Error) and "start the server" in last.text


@pytest.mark.parametrize(
    "address", ["127.0.0.1:80", "ftp://a/v1", "http://", "http://u:p@a/v1", "http://a:99999/v1", "http://a/v1?key=k"]
)
def test_Sk_an_address_that_cannot_be_one_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address"):
        OpenAIProvider(address, "tiny")


def test_Sk_the_command_line_says_what_is_missing() -> None:
    assert main(["http://127.0.0.1:1/v1"]) == 2
    assert main(["model.gguf", "tiny"]) == 2
    assert main(["http://127.0.0.1:1/v1", "tiny"]) == 1


def test_Sk_an_error_of_any_shape_is_one_line() -> None:
    assert words({"error": {"message": "a\nb"}}) == words({"detail": "a b"}) == words("a b") == "a b"


def plan(city: str, days: int = 1, *, _call: list[str] | None = None) -> dict[str, object]:
    """Plans a trip."""
    return {"city": city, "days": days, "_call": _call}


async def later(schema: str) -> str:
    return schema


async def test_Sk_functions_are_tools_by_their_annotations() -> None:
    functions = Functions([plan, later])
    tool = functions.tools()[0]
    assert (tool.name, tool.description) == ("plan", "Plans a trip.")
    assert tool.parameters["required"] == ["city"]
    assert tool.parameters["properties"]["days"]["type"] == "integer"
    assert await functions.call("plan", {"city": "Kyoto", "days": "2"}) == {"city": "Kyoto", "days": 2, "_call": None}
    assert await functions.call("later", {"schema": "x"}) == "x"


@pytest.mark.parametrize("arguments", [{}, {"city": "Kyoto", "days": "many"}, {"city": "Kyoto", "more": 1}])
async def test_Sk_arguments_that_the_annotations_refuse_do_not_reach_the_function(arguments: Any) -> None:
    with pytest.raises(ToolFailed, match=r"city|days|more"):
        await Functions([plan]).call("plan", arguments)


def test_Sk_a_function_without_names_for_its_arguments_is_refused() -> None:
    unnamed: Callable[..., object] = lambda *each: each  # noqa: E731
    with pytest.raises(TypeError, match="by name"):
        Functions([unnamed])
    with pytest.raises(ValueError, match="same name"):
        Functions([plan, plan])


def test_Sk_the_program_of_the_documentation_calls_its_tool() -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / "docs/second-door.md").read_text(), re.DOTALL)[0]
    call = json.dumps({"name": "weather", "arguments": {"city": "Kyoto"}})
    with Server(whole(call), *[whole('{"answer": "Sunny in Kyoto."}')] * 3) as server:
        program = program.replace("http://127.0.0.1:11434/v1", server.base_url)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60
        )
    assert "1 day(s) of sun in Kyoto" in done.stdout, done.stdout + done.stderr
    assert "Finish(reason='stop'" in done.stdout
