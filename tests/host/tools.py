"""What is granted to a run: tools with the result and error shapes of their kinds, skills, knowledge bases."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .script import Json, Model

# Tools the Host grants, with the result and error shapes of their kinds.

ToolType = Literal["builtin", "skill", "plugin", "mcp", "platform"]


@dataclass(eq=False)
class Tool:
    """A tool in `ctx.resources.tools`.

    `fn` is called with the parameters as keywords, or with one dict when `takes_dict`; it may be async. None: the
    result is `result`. `parameters`: the JSON schema, None for a tool without arguments. `operations`: what is granted.
    """

    name: str
    fn: Callable[..., Any] | None = None
    result: Any = "ok"
    type: ToolType = "plugin"
    description: str = "A tool"
    parameters: Json | None = None
    operations: tuple[str, ...] = ("detail", "call")
    takes_dict: bool = False
    delay: float = 0.0
    calls: list[Json] = field(default_factory=list, init=False)
    running: int = field(default=0, init=False)
    most_at_once: int = field(default=0, init=False)

    @property
    def resource(self) -> Json:
        return {
            "tool_name": self.name,
            "tool_type": self.type,
            "description": self.description,
            "operations": list(self.operations),
            "parameters": self.parameters,
        }

    async def call(self, parameters: Json) -> Any:
        """The raw result, or whatever `fn` raises."""
        self.calls.append(parameters)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.delay)
            if self.fn is None:
                return self.result
            made = self.fn(parameters) if self.takes_dict else self.fn(**parameters)
            return await made if inspect.isawaitable(made) else made
        finally:
            self.running -= 1


class ToolFailed(Exception):
    """A tool failed in the Host: the text is what the Host puts into its error."""


async def execute(tool: Tool, parameters: Json) -> Any:
    """Runs a tool as CALL_TOOL does. Raises `ToolFailed` except for plugin tools, whose failure is an ordinary text
    (langbot/pkg/provider/tools/loaders/plugin.py:invoke_tool; plugin/handler.py:call_tool)."""
    try:
        return await tool.call(parameters)
    except Exception as error:  # a scripted tool may raise anything
        if tool.type == "plugin":
            inner = f"ActionCallError: {type(error).__name__}: {error}"
            return f"error occurred when executing function {tool.name}: {inner}"
        raise ToolFailed(f"Failed to execute tool {tool.name}: {error}") from error


def mcp_content(*parts: Json | str) -> list[Json]:
    """An MCP result: a list of content elements with all their keys (loaders/mcp.py)."""
    empty = dict.fromkeys(("text", "image_url", "image_base64", "file_url", "file_base64", "file_name"))
    return [{**empty, **({"type": "text", "text": part} if isinstance(part, str) else part)} for part in parts]


# Skills: langbot/pkg/provider/tools/loaders/skill.py, skill_authoring.py.

FILE_LIMIT = 256 * 1024


@dataclass(frozen=True)
class Skill:
    """A skill package. `content` is the text of its SKILL.md, `files` the other files by relative path."""

    name: str
    description: str = ""
    content: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def revision(self) -> str:
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def resource(self) -> Json:
        return {"skill_name": self.name, "display_name": self.name, "description": self.description}


class Skills:
    """The skill tools. Two `activate` calls at the same time clash, as the run ledger's pin makes them."""

    def __init__(self, skills: list[Skill]) -> None:
        self.all = {skill.name: skill for skill in skills}
        self.activated: list[str] = []
        self._activating = False

    def tools(self) -> list[Tool]:
        """They are offered whether there are skills or not (toolmgr.py:get_all_tools)."""
        return [
            self._tool("activate", self.activate, ["skill_name"]),
            self._tool("list_skill_resources", self.list_files, ["skill_name"], ["path", "revision"]),
            self._tool("read_skill_resource", self.read_file, ["skill_name", "path"], ["revision"]),
        ]

    @staticmethod
    def _tool(name: str, fn: object, needed: list[str], more: Sequence[str] = ()) -> Tool:
        properties = {key: {"type": "string", "description": key} for key in (*needed, *more)}
        schema = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
        assert callable(fn)
        return Tool(name, fn=fn, type="skill", description=f"Skills: {name}", parameters=schema)

    async def activate(self, skill_name: str) -> Json:
        skill = self._find(skill_name)
        if self._activating:
            raise RuntimeError("Concurrent run update; retry Skill activation")
        self._activating = True
        await asyncio.sleep(0.005)
        self._activating = False
        self.activated.append(skill_name)
        return {
            "activated": True,
            "skill_name": skill_name,
            "mount_path": f"/opt/langbot-artifacts/{skill.revision}",
            "revision": skill.revision,
            "capabilities": [],
            "activated_skill_names": list(dict.fromkeys(self.activated)),
            "content": skill.content,
        }

    def list_files(self, skill_name: str, path: str = "", revision: str = "") -> Json:
        return {"skill_name": skill_name, "entries": sorted(self._find(skill_name).files)}

    def read_file(self, skill_name: str, path: str, revision: str = "") -> Json:
        content = self._find(skill_name).files.get(path)
        if content is None:
            raise FileNotFoundError(path)
        return {"skill_name": skill_name, "path": path, "content": content[:FILE_LIMIT]}

    def _find(self, name: str) -> Skill:
        if name not in self.all:
            raise ValueError(f"Skill {name} not found")
        return self.all[name]


# Knowledge bases and reranking: langbot/pkg/plugin/handler.py:retrieve_knowledge_base, invoke_rerank.

RERANK_LIMIT = 64
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Chunk:
    """A piece of knowledge. `distance`: smaller is nearer. `score` may be missing."""

    text: str
    distance: float = 0.5
    score: float | None = None
    id: str = ""
    metadata: Json = field(default_factory=dict)

    def entry(self, index: int) -> Json:
        part = dict.fromkeys(("image_url", "image_base64", "file_url", "file_base64", "file_name"))
        return {
            "id": self.id or f"chunk-{index}",
            "content": [{"type": "text", "text": self.text, **part}],
            "metadata": self.metadata,
            "distance": self.distance,
            "score": self.score,
        }


@dataclass(eq=False)
class KnowledgeBase:
    """A knowledge base answering with its `chunks` in their order, `top_k` at most unless `ignores_top_k`.

    `error`: the engine fails with this text.
    """

    id: str
    chunks: Sequence[Chunk | str] = ()
    name: str = ""
    error: str | None = None
    ignores_top_k: bool = False
    delay: float = 0.0
    queries: list[tuple[str, int]] = field(default_factory=list, init=False)

    async def retrieve(self, query: str, top_k: int) -> list[Json]:
        self.queries.append((query, top_k))
        await asyncio.sleep(self.delay)
        if self.error is not None:
            raise RuntimeError(self.error)
        chosen = self.chunks if self.ignores_top_k else self.chunks[:top_k]
        return [(Chunk(one) if isinstance(one, str) else one).entry(index) for index, one in enumerate(chosen)]


def overlap(query: str, document: str) -> float:
    """A simple likeness: shared words per word of the query."""
    wanted = set(_WORD.findall(query.lower()))
    return len(wanted & set(_WORD.findall(document.lower()))) / max(1, len(wanted))


def rerank(model: Model, query: str, documents: Sequence[str], top_k: int | None) -> list[Json]:
    """The first 64 documents scored, min-max normalised, best first (litellmchat.py:invoke_rerank)."""
    score = model.score or overlap
    raw = [score(query, document) for document in documents[:RERANK_LIMIT]]
    low, high = min(raw, default=0.0), max(raw, default=0.0)
    scale = high - low
    scored: list[Json] = [
        {"index": index, "relevance_score": (value - low) / scale if scale else value}
        for index, value in enumerate(raw)
    ]
    scored.sort(key=lambda one: float(one["relevance_score"]), reverse=True)
    return scored if top_k is None else scored[: int(top_k)]
