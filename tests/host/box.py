"""The sandbox: langbot/pkg/plugin/box_actions.py, box/runner.py, box/export_errors.py."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .script import Json
from .tools import Tool

FILE_LIMIT = 10 * 1024 * 1024
RUN_LIMIT = 50 * 1024 * 1024
RUN_FILES = 100
PATHS = 20
EXPORT_MARK = "LANGBOT_EXPORT_V1:"


class BoxValidationError(Exception):
    """Stands for the Host's exception of this name: only name and text reach the plugin."""


class BoxExportError(BoxValidationError):
    """An export failure with its structured part inside the text."""


@dataclass
class Binding:
    """What one run holds of a Box."""

    box_id: str
    imported: dict[str, Json] = field(default_factory=dict)
    exported: dict[str, Json] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Box:
    """All sandboxes of the workspace. `files` is `/workspace`, shared by every Box whatever its key.

    `exec` answers the native tool of that name; it may change `files`. `failing_imports`: attachment ids that cannot
    be imported.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    available: bool = True
    enabled: bool = True
    limit: int | None = 64
    required_reuse_key: str | None = None
    native_tools: bool = True
    exec: Callable[[Json], Any] | None = None
    failing_imports: frozenset[str] = frozenset()
    keys: list[str] = field(default_factory=list, init=False)
    bindings: dict[str, Binding] = field(default_factory=dict, init=False)

    def status(self) -> Json:
        remaining = None if self.limit is None else max(0, self.limit - len(set(self.keys)))
        return {
            "enabled": self.enabled,
            "available": self.available,
            "limit": self.limit,
            "used": len(set(self.keys)),
            "remaining": remaining,
            "required_reuse_key": self.required_reuse_key,
            "reason": None if self.available else "No sandbox backend is connected",
        }

    def acquire(self, data: Json) -> Json:
        key = data.get("reuse_key")
        if not isinstance(key, str) or not 1 <= len(key) <= 1024:
            raise BoxValidationError("reuse_key must have 1 to 1024 characters")
        if set(data.get("options") or {}) - {"image"}:
            raise BoxValidationError("Only the Box image can be specified; resource limits are Host-owned")
        self._require_available()
        if self.required_reuse_key is not None and key != self.required_reuse_key:
            raise BoxValidationError("This deployment requires the global Box reuse key")
        if key not in self.keys and self.limit is not None and len(set(self.keys)) >= self.limit:
            raise BoxValidationError(f"Box session limit reached ({self.limit})")
        self.keys.append(key)
        return {"id": self.id_of(key), "status": "running"}

    def id_of(self, key: str) -> str:
        if self.required_reuse_key is not None:
            return "global"
        return "runner-" + hashlib.sha256(key.encode()).hexdigest()

    def sessions(self) -> Json:
        return {"items": [{"id": self.id_of(key), "status": "running"} for key in dict.fromkeys(self.keys)]}

    def bind(self, run_id: str, box_id: str) -> Json:
        self._require_available()
        bound = self.bindings.get(run_id)
        if bound is not None and bound.box_id != box_id:
            raise BoxValidationError("A run cannot change its Box after binding")
        if box_id not in {self.id_of(key) for key in self.keys}:
            raise BoxValidationError("Box not found in the current Workspace")
        self.bindings.setdefault(run_id, Binding(box_id))
        return {"box_id": box_id, "outbox": f"/workspace/outbox/{run_id}"}

    def bound(self, run_id: str) -> Binding:
        try:
            return self.bindings[run_id]
        except KeyError:
            raise BoxValidationError("Runner must bind a Box before using sandbox tools or files") from None

    def import_attachments(self, run_id: str, attachments: list[Json], wanted: list[str] | None) -> Json:
        """`attachments`: those of the run's own input. One that fails fails the whole call."""
        binding = self.bound(run_id)
        known = {str(one["ref"]): one for one in attachments}
        ids = list(known) if wanted is None else wanted
        if not isinstance(ids, list) or any(key not in known for key in ids):
            raise BoxValidationError("Unknown input attachment reference")
        if len(ids) != len(set(ids)):
            raise BoxValidationError("Duplicate input attachment reference")
        for key in ids:
            if key in binding.imported:
                continue
            body = str(known[key].get("content") or "").encode()
            if key in self.failing_imports or len(body) > FILE_LIMIT:
                raise BoxValidationError(f"Failed to import input attachment {key}")
            name = str(known[key].get("name") or key)
            path = f"/workspace/inbox/{run_id}-{key}/{name}"
            self.files[path] = body
            kind = str(known[key]["type"]).capitalize()
            binding.imported[key] = {"id": key, "name": name, "type": kind, "size": len(body), "path": path}
        return {"items": [binding.imported[key] for key in ids]}

    def export(self, run_id: str, paths: Any) -> Json:
        """Takes files out; the reply lists all accepted ones of the run that were not sent yet."""
        binding = self.bound(run_id)
        self._check_paths(paths)
        missing = [path for path in paths if path not in self.files]
        if missing:
            raise BoxValidationError(f"Sandbox file not found: {missing[0]}")
        batch = [(path, self.files[path]) for path in paths]
        for path, body in batch:
            if len(body) > FILE_LIMIT:
                raise export_error("file_bytes", limit=FILE_LIMIT, actual=len(body), path=path)
        if len(binding.exported) + len(batch) > RUN_FILES:
            raise export_error("run_files", limit=RUN_FILES, actual=len(binding.exported) + len(batch), path=paths[0])
        total = sum(int(one["size"]) for one in binding.exported.values()) + sum(len(body) for _, body in batch)
        if total > RUN_LIMIT:
            raise export_error("run_bytes", limit=RUN_LIMIT, actual=total, path=paths[0])
        for path, body in batch:
            key = str(uuid.uuid4())
            binding.exported[key] = {"id": key, "name": path.rsplit("/", 1)[-1], "type": "File", "size": len(body)}
            del self.files[path]
        unsent = [one for key, one in binding.exported.items() if key not in binding.sent]
        return {"warning": None, "items": unsent}

    @staticmethod
    def _check_paths(paths: Any) -> None:
        if not isinstance(paths, list) or not 1 <= len(paths) <= PATHS:
            raise BoxValidationError(f"paths must contain 1 to {PATHS} file paths")
        for path in paths:
            parts = path.split("/")[1:] if isinstance(path, str) and path.startswith("/") else [""]
            if "\\" in path or "\x00" in path or any(part in {"", ".", ".."} for part in parts):
                raise BoxValidationError("paths must be normalized absolute sandbox file paths")
        if len(set(paths)) != len(paths):
            raise BoxValidationError("Duplicate export file paths")

    def take(self, run_id: str, file_ids: list[str]) -> list[str]:
        """Names of exported files that go out with a message, each once (box/runner.py:exported_message)."""
        binding = self.bound(run_id)
        if len(set(file_ids)) != len(file_ids):
            raise BoxValidationError("Duplicate exported file ID")
        if any(key not in binding.exported or key in binding.sent for key in file_ids):
            raise BoxValidationError("Output file does not belong to this run or has already been submitted")
        binding.sent.update(file_ids)
        return [str(binding.exported[key]["name"]) for key in file_ids]

    def _require_available(self) -> None:
        if not (self.enabled and self.available):
            raise BoxValidationError("No sandbox backend is available")

    def tools(self) -> list[Tool]:
        """The native tools (provider/tools/loaders/native.py), listed whenever a backend is ready."""
        if not (self.native_tools and self.available and self.enabled):
            return []
        made: dict[str, tuple[Callable[[Json], Any], list[str]]] = {
            "exec": (self._exec, ["command"]),
            "read": (self._read, ["path"]),
            "write": (self._write, ["path", "content"]),
            "edit": (self._edit, ["path", "old_string", "new_string"]),
            "glob": (self._glob, ["pattern"]),
            "grep": (self._grep, ["pattern"]),
        }
        return [
            Tool(
                name, fn=fn, type="builtin", description=f"Sandbox: {name}", parameters=_schema(needed), takes_dict=True
            )
            for name, (fn, needed) in made.items()
        ]

    def _exec(self, given: Json) -> Any:
        if self.exec is not None:
            return self.exec(given)
        return {"ok": True, "exit_code": 0, "stdout": "", "stderr": "", "status": "completed", "truncated": False}

    def _read(self, given: Json) -> Json:
        body = self.files.get(given["path"])
        if body is None:
            return {"ok": False, "error": f"File not found: {given['path']}"}
        return {"ok": True, "content": body.decode("utf-8", "replace"), "truncated": False}

    def _write(self, given: Json) -> Json:
        self.files[given["path"]] = str(given["content"]).encode()
        return {"ok": True, "path": given["path"]}

    def _edit(self, given: Json) -> Json:
        text = self.files.get(given["path"], b"").decode()
        if text.count(given["old_string"]) != 1:
            return {"ok": False, "error": "old_string must match exactly once"}
        self.files[given["path"]] = text.replace(given["old_string"], given["new_string"]).encode()
        return {"ok": True, "path": given["path"]}

    def _glob(self, given: Json) -> Json:
        base = str(given.get("path") or "/workspace").rstrip("/")
        found = [p for p in self.files if p.startswith(base + "/") and _globs(p[len(base) + 1 :], given["pattern"])]
        return {"ok": True, "matches": found[::-1][:100], "total": len(found), "truncated": len(found) > 100}

    def _grep(self, given: Json) -> Json:
        wanted = str(given["pattern"])
        found = [path for path, body in self.files.items() if wanted in body.decode("utf-8", "replace")]
        return {"ok": True, "matches": [{"file": path} for path in found[:200]]}


def _globs(path: str, pattern: str) -> bool:
    return fnmatch.fnmatch(path, pattern) or (pattern.startswith("**/") and fnmatch.fnmatch(path, pattern[3:]))


def _schema(required: list[str]) -> Json:
    return {"type": "object", "properties": {name: {"type": "string"} for name in required}, "required": required}


def export_error(kind: str, *, limit: int, actual: int, path: str) -> BoxExportError:
    """The text of an export failure: the marker and its JSON (box/export_errors.py:export_error)."""
    body = {
        "code": "box.export.limit_exceeded",
        "message": f"Attachment export failed: Sandbox outbox exceeds the {kind} limit",
        "retryable": True,
        "details": {
            "version": 1,
            "phase": "export",
            "limit_type": kind,
            "limit": limit,
            "actual": actual,
            "sandbox_paths": [path],
            "files_retained": True,
        },
    }
    return BoxExportError(EXPORT_MARK + json.dumps(body))
