"""Q5, real: the same tasks with a real model behind an OpenAI-compatible server; llama.cpp in this project's demo."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from bench.small.play import GUIDED, LENIENT, NATIVE, NOTED, STANDARD, TEXT, Arm, Played, play
from bench.small.tasks import TASKS, Task
from demo.endpoint import serve_gguf
from demo.model import choose
from demo.ports import free_ports
from demo.processes import Children
from tests.host import ModelRequest, Reason, Reply, ToolCall
from weights.catalogue import cache_folder

ARMS: Final = (STANDARD, LENIENT, NATIVE, TEXT, GUIDED, NOTED)
SUBSET: Final = ("calc-1", "units-1", "write-1", "read-1", "find-1", "remind-2", "two-1", "chat-2")
"""Eight tasks, one of each kind: forty take up to an hour in each arm on two busy cores."""
_REPLY_TOKENS = 300
_PATIENCE = 600.0
"""Seconds for one reply: a busy machine is slow, and that is not what is measured."""


@dataclass
class Served:
    """A model behind a server; `seconds` of waiting so far. Its temperature is 0 where the request asks for none."""

    base_url: str
    seconds: float = field(default=0.0, init=False)

    async def __call__(self, request: ModelRequest) -> Reply:
        body: dict[str, Any] = {
            "messages": request.messages,
            "max_tokens": _REPLY_TOKENS,
            "temperature": 0.0,
            "seed": 1,
            **request.extra_args,
        }
        if request.funcs:
            body["tools"] = [{"type": "function", "function": _described(func)} for func in request.funcs]
        start = time.perf_counter()
        async with httpx.AsyncClient(timeout=_PATIENCE) as client:
            answer = await client.post(f"{self.base_url}/chat/completions", json=body)
        self.seconds += time.perf_counter() - start
        return reply_of(answer)


def _described(func: dict[str, Any]) -> dict[str, Any]:
    return {key: func[key] for key in ("name", "description", "parameters")}


def reply_of(answer: httpx.Response) -> Reply:
    """A server's answer as the Host's provider hands it on."""
    if answer.status_code != 200:
        return Reply(error=Reason.BAD_REQUEST if answer.status_code == 400 else Reason.API_ERROR)
    value = answer.json()
    choice = value["choices"][0]
    message = choice["message"]
    calls = [
        ToolCall(call["function"]["name"], call["function"]["arguments"], call.get("id"))
        for call in message.get("tool_calls") or ()
    ]
    usage = {key: value["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")}
    text = str(message.get("content") or "")
    return Reply(text, chunks=4, tool_calls=calls, finish_reason=choice.get("finish_reason"), usage=usage)


@contextmanager
def engine(size: str) -> Iterator[str]:
    """llama.cpp with one of the demo's models, "1.5b" or "0.5b"; gives its base URL. The file must be there already.

    Raises FileNotFoundError without the file, and DemoError when the server does not answer in time.
    """
    wanted = choose(size)
    file = cache_folder() / wanted.file
    if not file.is_file():
        raise FileNotFoundError(f"{file.name} is not there: `DEMO_MODEL={size} make demo` fetches it")
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as logs, Children() as children:
        yield serve_gguf(children, wanted, free_ports(1)[0], Path(logs), lambda _: None).base_url


def chosen(ids: Sequence[str]) -> list[Task]:
    """Tasks by id. Raises KeyError for an unknown one."""
    by_id = {task.id: task for task in TASKS}
    return [by_id[id] for id in ids]


async def played(arm: Arm, served: Served, tasks: Sequence[Task]) -> list[Played]:
    """The tasks one after the other, since the server has one slot; each is told on stderr when it is over."""
    done = []
    for task in tasks:
        done.append(await play(task, arm, served))
        print(f"{arm.name}: {done[-1]}", file=sys.stderr, flush=True)
    return done
