"""Q5, real: the same tasks with a real model behind an OpenAI-compatible server; llama.cpp in this project's demo."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from bench.small.play import GUIDED, LENIENT, NATIVE, STANDARD, TEXT, Arm, Played, play
from bench.small.tasks import TASKS, Task
from demo.model import choose
from demo.ports import free_ports
from tests.host import ModelRequest, Reason, Reply, ToolCall
from weights.catalogue import cache_folder

ARMS: Final = (STANDARD, LENIENT, NATIVE, TEXT, GUIDED)
SUBSET: Final = (
    "calc-1",
    "calc-4",
    "units-1",
    "write-1",
    "read-1",
    "append-1",
    "find-1",
    "find-5",
    "remind-2",
    "message-1",
    "two-1",
    "chat-2",
)
"""Twelve tasks of every kind: forty take an hour on two cores."""
_REPLY_TOKENS = 300
_PATIENCE = 600.0
"""Seconds for one reply: a busy machine is slow, and that is not what is measured."""


@dataclass
class Served:
    """A model behind a server. `temperature` where the request asks for none; `seconds` of waiting so far."""

    base_url: str
    temperature: float = 0.0
    seconds: float = field(default=0.0, init=False)

    async def __call__(self, request: ModelRequest) -> Reply:
        body: dict[str, Any] = {
            "messages": request.messages,
            "max_tokens": _REPLY_TOKENS,
            "temperature": self.temperature,
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

    Raises FileNotFoundError without the file, and RuntimeError when the server does not answer in two minutes.
    """
    file = cache_folder() / choose(size).file
    if not file.is_file():
        raise FileNotFoundError(f"{file.name} is not there: `DEMO_MODEL={size} make demo` fetches it")
    port = free_ports(1)[0]
    # A waiting thread that spins takes the core from the one that works.
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    command = [sys.executable, "-m", "demo.engine_server", str(file), str(port), size]
    root = Path(__file__).parents[2]
    child = subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield _ready(f"http://127.0.0.1:{port}", child)
    finally:
        child.terminate()
        child.wait()


def _ready(address: str, child: subprocess.Popen[bytes]) -> str:
    for _ in range(240):
        try:
            if httpx.get(f"{address}/health", timeout=2).status_code == 200:
                return f"{address}/v1"
        except httpx.HTTPError:
            if child.poll() is not None:
                break
        time.sleep(0.5)
    raise RuntimeError("the model's server did not start")


def chosen(ids: Sequence[str]) -> list[Task]:
    """Tasks by id. Raises KeyError for an unknown one."""
    by_id = {task.id: task for task in TASKS}
    return [by_id[id] for id in ids]


async def played(arm: Arm, served: Served, tasks: Sequence[Task]) -> list[Played]:
    """The tasks one after the other: one slot, one model."""
    return [await play(task, arm, served) for task in tasks]
