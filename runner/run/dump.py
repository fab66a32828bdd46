"""Faulty replies in a bounded file, for bug reports and new test cases (`debug-dump`).

Off unless the binding asks for it. The file lies in the temporary folder of the worker, the one place that a plugin may
write to in every kind of deployment; only its own user may read it. Nothing here ever harms a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from runner.conversation.cut import head, sendable
from runner.guards import without_keys
from runner.host.events import Json
from runner.models.calls import RawCall
from runner.models.reply import Reply
from runner.small.guiding import PSEUDO_TOOLS
from runner.tools.catalogue import Catalogue
from runner.tools.compact import compact_schema
from runner.tools.prepare import Refused, WantedCall, prepare

FOLDER: Final = "localagent-replies"
FILE: Final = "replies.jsonl"
LIMIT: Final = 1_000_000
"""Bytes of the newer file and the older one together; the oldest replies are dropped first."""

_REPLY_CHARACTERS: Final = 20_000
_TOOLS: Final = 64


def what_is_wrong(reply: Reply, catalogue: Catalogue) -> tuple[str, ...]:
    """Why a reply had to be refused or repaired, in short words; nothing for one that is fine."""
    found = [*reply.faults, *(["repeats_itself"] if reply.chanted else [])]
    for call in reply.calls:
        if call.name not in PSEUDO_TOOLS:
            found += _faults_of(call, catalogue)
    return tuple(dict.fromkeys(found))


def _faults_of(call: RawCall, catalogue: Catalogue) -> Iterator[str]:
    if not call.certain:
        yield "repaired"
    prepared = prepare(WantedCall(call.id, call.name, call.arguments, certain=call.certain), catalogue)
    if isinstance(prepared, Refused):
        yield prepared.code.value
        return
    if prepared.mended:
        yield "repaired"


def record_of(reply: Reply, catalogue: Catalogue, wrong: tuple[str, ...]) -> dict[str, Json]:
    """One reply as it stands in the file: what the model wrote, what was read in it, and the tools it could call."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": reply.model_id,
        "wrong": list(wrong),
        "reply": _harmless(reply.raw if reply.raw is not None else reply.text),
        "calls": [{"name": _harmless(call.name), "arguments": _harmless(call.arguments)} for call in reply.calls],
        "cut": reply.cut,
        "tools": [
            {"name": entry.name, "parameters": compact_schema(entry.spec.parameters)}
            for entry in catalogue.entries[:_TOOLS]
        ],
    }


def _harmless(text: str) -> str:
    """Bounded, and without what looks like a key or a password."""
    return without_keys(head(sendable(text), _REPLY_CHARACTERS))


class Dump:
    """The file. `folder` is made where it is missing; what is there and not ours is refused."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / FOLDER
        self._limit = limit
        self.path = self._folder / FILE

    def write(self, record: dict[str, Json]) -> None:
        """Append one record; blocks, so it belongs into a thread. Raises OSError."""
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        if len(line) > self._limit // 2:
            record = {**record, "tools": []}
            line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")[: self._limit // 2 - 1] + b"\n"
        self._make_folder()
        if self._size() + len(line) > self._limit // 2:
            self.path.replace(self._folder / f"older-{FILE}")
        # Nobody else's link is followed: the temporary folder is open to all.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(self.path, flags, 0o600), "ab") as file:
            file.write(line)

    def _size(self) -> int:
        return self.path.lstat().st_size if self.path.exists() else 0

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = self._folder.lstat()
        ours = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if not stat.S_ISDIR(about.st_mode) or not ours:
            raise OSError(f"{self._folder} belongs to somebody else")


class Recorder:
    """Records the faulty replies of one run. `log` and `warn` get one line each at most."""

    def __init__(self, dump: Dump, log: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self._dump = dump
        self._log = log
        self._warn = warn
        self._told = False

    async def hear(self, reply: Reply, catalogue: Catalogue) -> None:
        """Look at one reply. Never raises: a record that cannot be written is worth one line and nothing more."""
        wrong = what_is_wrong(reply, catalogue)
        if not wrong:
            return
        try:
            await asyncio.to_thread(self._dump.write, record_of(reply, catalogue, wrong))
        except (OSError, ValueError, RecursionError) as error:
            self._tell(self._warn, f"debug-dump: a faulty reply could not be recorded: {error}")
        else:
            self._tell(self._log, f"debug-dump: faulty replies of this run are recorded in {self._dump.path}")

    def _tell(self, say: Callable[[str], None], line: str) -> None:
        if not self._told:
            self._told = True
            say(line)
