"""What the tests give the real LangBot to work with: a plugin with tools, an MCP server over HTTP, a skill package."""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from demo import package
from demo.langbot import base_environment
from demo.ports import free_ports
from demo.processes import Children, wait_until
from tests.e2e.bed import Bed
from tests.e2e.scripted_model import Call, Exchange, Recorder, Reply, Request

HERE = Path(__file__).parent
PLUGIN = HERE / "plugins" / "toolbox"
SKILL = HERE / "skills" / "tide-tables"

# A JSON value on the wire.
Json = dict[str, Any]


def call(name: str, id: str = "call_0", **arguments: object) -> Call:
    return Call(name, json.dumps(arguments), id)


def calls(*made: Call, text: str = "") -> Reply:
    """A reply of tool calls, with a text before them."""
    return Reply(chunks=(text,) if text else (), calls=made)


def offered(request: Request) -> set[str]:
    """The names of the tools in a request."""
    return {str(tool["function"]["name"]) for tool in request.body.get("tools") or ()}


def tool_texts(request: Request) -> list[str]:
    """The tool messages of a request, in order."""
    return [text for role, text in request.texts if role == "tool"]


@contextmanager
def plugin_installed(bed: Bed, folder: Path, plugin: Path = PLUGIN, tool: str = "weigh") -> Iterator[None]:
    """A plugin with tools, the toolbox or another, built into `folder` and installed through LangBot's endpoint.

    `tool` is one of its tools: when LangBot lists it, the others are there too.
    """
    who = package.identity(plugin)
    bed.langbot.api.install(package.build(plugin, folder))
    try:
        wait_until(f"the tools of {who.name}", lambda: tool in _tool_names(bed), seconds=60)
        yield
    finally:
        bed.langbot.api.uninstall(who.author, who.name)


@contextmanager
def mcp_server(bed: Bed, folder: Path) -> Iterator[None]:
    """The tests' MCP server in a process of its own, joined to LangBot by its URL."""
    name = "harbour"
    (port,) = free_ports(1)
    with Children() as children:
        argv = [sys.executable, str(HERE / "mcp_server.py"), str(port)]
        child = children.start("MCP server", argv, folder, base_environment("-"), folder / "mcp.log")
        wait_until("the MCP server", lambda: _answers(port), 60, child)
        settings = {"url": f"http://127.0.0.1:{port}/mcp"}
        request(
            bed, "POST", "/mcp/servers", json={"name": name, "mode": "http", "enable": True, "extra_args": settings}
        )
        try:
            wait_until("the MCP server's tools", lambda: "tide" in _tool_names(bed), seconds=60)
            yield
        finally:
            request(bed, "DELETE", f"/mcp/servers/{name}")


@contextmanager
def skill_installed(bed: Bed) -> Iterator[str]:
    """The skill package, uploaded as a zip through LangBot's endpoint. Yields its name."""
    upload = {"file": (f"{SKILL.name}.zip", _zipped(SKILL), "application/zip")}
    request(bed, "POST", "/skills/install/upload", files=upload)
    try:
        yield SKILL.name
    finally:
        request(bed, "DELETE", f"/skills/{SKILL.name}")


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package_file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                package_file.write(path, path.relative_to(folder.parent))
    return buffer.getvalue()


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/mcp", timeout=2, trust_env=False)
    except httpx.HTTPError:
        return False
    return True


def _tool_names(bed: Bed) -> set[str]:
    return {str(tool["name"]) for tool in request(bed, "GET", "/tools")["tools"]}


def request(bed: Bed, method: str, path: str, **body: Any) -> Json:
    """One call of LangBot's API; the data it answers. Raises AssertionError when it is refused."""
    session = bed.langbot.api.session
    headers = {"Authorization": f"Bearer {session.token}"}
    url = f"{session.base_url}/api/v1{path}"
    answer = httpx.request(method, url, headers=headers, timeout=120, trust_env=False, **body)
    assert answer.status_code == 200, f"{method} {path}: {answer.text[:500]}"
    data: Json = answer.json().get("data") or {}
    return data


# Ten everyday tasks for a small model behind the real LangBot, and whether each was done.

DESK = Path(__file__).parent / "plugins" / "desk"

_MARKUP = re.compile(
    r"</?tool|<\||\[TOOL|```(?:json|tool)|\"(?:name|arguments|parameters)\"\s*:|reply_to_user|<function|</?think"
)


@dataclass(frozen=True, slots=True)
class Task:
    """`ran`: what tools must have told the model; `says`: what the answer must hold. Both as regular expressions."""

    question: str
    ran: tuple[str, ...] = ()
    says: str = r"\w"


TASKS = (
    Task("What is the weather in Oslo right now?", (r"Oslo: \d+ degrees",), r"\d+"),
    Task("Where is my parcel PX-204?", (r"Parcel PX-204 is at depot D\d+",), r"D\d{3}"),
    Task("Remind me to water the plants in 45 minutes.", (r"Reminder R7045 is set",)),
    Task("What is 128 * 46?", (r"= 5888",), r"5,?888"),
    Task(
        "Is it warmer in Lima or in Cairo at the moment?", (r"Lima: \d+ degrees", r"Cairo: \d+ degrees"), r"Lima|Cairo"
    ),
    Task("Thanks, you have been very helpful!"),
    Task("帮我查一下包裹 PX-377 在哪里。", (r"Parcel PX-377 is at depot D\d+",), r"D\d{3}"),
    Task("Please add 19.5 and 22.25 and divide the sum by 5.", (r"= 8\.35",), r"8[.,]35"),
    Task("Set a reminder to call Mia, 20 minutes from now.", (r"Reminder R7020 is set",)),
    Task(
        "Track parcel PX-12, and remind me in 60 minutes to fetch it.",
        (r"Parcel PX-12 is at depot D\d+", r"Reminder R7060 is set"),
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task. `requests` went to the model, `guided` of them with a schema; `markup` was shown."""

    task: Task
    answer: str
    done: bool
    markup: bool
    requests: int
    guided: int


def shows_markup(text: str) -> bool:
    """Whether a text of the chat holds anything of a call's form."""
    return _MARKUP.search(text) is not None


async def play(bed: Bed, recorder: Recorder, model: str, task: Task, settings: dict[str, object]) -> Outcome:
    """One task in a conversation of its own; `model` is LangBot's id of the model behind the recorder."""
    before = len(recorder.exchanges)
    async with bed.chat(bed.pipeline(model, config=settings)) as chat:
        turn = await chat.ask(task.question, seconds=900)
    exchanges = recorder.exchanges[before:]
    shown = [frame.text for frame in turn.frames]
    return Outcome(
        task=task,
        answer=turn.answer,
        done=_ran(task, exchanges) and re.search(task.says, turn.answer) is not None,
        markup=any(map(shows_markup, shown)),
        requests=len(exchanges),
        guided=sum(exchange.guided for exchange in exchanges),
    )


def _ran(task: Task, exchanges: Sequence[Exchange]) -> bool:
    """Whether the tools ran as wanted; for small talk, that none did."""
    told = "\n".join(exchange.text for exchange in exchanges)
    if not task.ran:
        return len(exchanges) == 1
    return all(re.search(wanted, told) for wanted in task.ran)
