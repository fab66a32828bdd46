"""Skills: langbot/pkg/provider/tools/loaders/skill.py, skill_authoring.py."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from .script import Json
from .tools import Tool

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
