"""What LangBot itself stored of a conversation: run ledger and transcript, read from its SQLite file (never written).

LangBot 4.11.2 offers no HTTP call for either.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.errors import DemoError


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger holds it. `reason` is the failure text, '' where there is none."""

    run_id: str
    runner_id: str
    conversation_id: str
    status: str
    reason: str
    finish_reason: str
    usage: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """One stored message. `text` is whole (from content_json), not the 4,000 characters of `content`."""

    seq: int
    transcript_id: str
    conversation_id: str
    role: str
    text: str
    run_id: str
    runner_id: str
    message: dict[str, Any]


class Records:
    """The rows of one LangBot instance; newest last. Raises DemoError when its database cannot be read."""

    def __init__(self, database: Path) -> None:
        self._database = database

    def runs(self, conversation_id: str) -> list[RunRow]:
        query = (
            "select run_id, runner_id, conversation_id, status, status_reason, usage_json from agent_run"
            " where conversation_id = ? order by id"
        )
        with self._open() as rows:
            found = rows.execute(query, (conversation_id,)).fetchall()
            return [
                RunRow(
                    run_id=run_id,
                    runner_id=runner_id,
                    conversation_id=conversation,
                    status=status,
                    reason=reason or "",
                    finish_reason=self._finish_reason(rows, run_id),
                    usage=json.loads(usage) if usage else {},
                )
                for run_id, runner_id, conversation, status, reason, usage in found
            ]

    def transcript(self, conversation_id: str) -> list[TranscriptRow]:
        query = (
            "select seq, transcript_id, conversation_id, role, content, content_json, run_id, runner_id from transcript"
            " where conversation_id = ? order by id"
        )
        with self._open() as rows:
            return [_transcript_row(*row) for row in rows.execute(query, (conversation_id,)).fetchall()]

    def event_types(self, run_id: str) -> list[str]:
        """The types of the results that the Host accepted in a run, in order."""
        with self._open() as rows:
            found = rows.execute("select type from agent_run_event where run_id = ? order by sequence", (run_id,))
            return [str(kind) for (kind,) in found.fetchall()]

    def tools(self, run_id: str) -> list[tuple[str, str]]:
        """The tools that were called in a run, in order: the name of each, and its arguments as JSON."""
        query = (
            "select data_json from agent_run_event where run_id = ? and type = 'tool.call.started' order by sequence"
        )
        with self._open() as rows:
            found = [json.loads(data) for (data,) in rows.execute(query, (run_id,)).fetchall()]
        return [(str(data["tool_name"]), json.dumps(data.get("parameters"), ensure_ascii=False)) for data in found]

    @staticmethod
    def _finish_reason(rows: sqlite3.Connection, run_id: str) -> str:
        query = "select data_json from agent_run_event where run_id = ? and type = 'run.completed'"
        found = rows.execute(query, (run_id,)).fetchone()
        return str(json.loads(found[0]).get("finish_reason") or "") if found and found[0] else ""

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)) as rows:
                yield rows
        except sqlite3.Error as error:
            raise DemoError(f"LangBot's records could not be read from {self._database}: {error}") from error


def _transcript_row(
    seq: int,
    transcript_id: str,
    conversation_id: str,
    role: str,
    content: str | None,
    content_json: str | None,
    run_id: str | None,
    runner_id: str | None,
) -> TranscriptRow:
    message: dict[str, Any] = json.loads(content_json) if content_json else {}
    return TranscriptRow(
        seq=seq,
        transcript_id=transcript_id,
        conversation_id=conversation_id,
        role=role,
        text=_text(message.get("content"), content or ""),
        run_id=run_id or "",
        runner_id=runner_id or "",
        message=message,
    )


def _text(content: object, otherwise: str) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return otherwise
