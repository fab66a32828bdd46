"""What the Host keeps of a chat: its transcript and the state of a binding."""

from __future__ import annotations

import copy
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from .script import Json

# The transcript as the Host keeps and pages it: langbot/pkg/agent/runner/transcript_store.py and run_journal.py.

CONTENT_LIMIT = 4000
PAGE_LIMIT = 100
WORKSPACE = "workspace-1"
BOT = "bot-1"


def whole_text(content_json: Json | None, cut: str | None) -> str:
    """The text of a row: all of it stands in `content_json`, its first 4,000 characters in `cut`."""
    content = (content_json or {}).get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text") or "") for part in content if part.get("type") == "text")
    return str(content if content is not None else cut or "")


@dataclass(eq=False)
class Row:
    """One message. `seq` is global over all conversations, as the store's autoincrement is."""

    seq: int
    conversation: str
    role: str
    event_id: str
    content: str | None
    content_json: Json | None
    attachment_refs: list[Json] = field(default_factory=list)
    metadata: Json = field(default_factory=dict)
    bot: str = BOT
    hidden: bool = False
    created_at: int = 0

    @property
    def text(self) -> str:
        """The whole text, not cut at 4,000 characters."""
        return whole_text(self.content_json, self.content)

    def item(self, *, attachments: bool) -> Json:
        """As a page shows it (transcript_store.py:_row_to_dict)."""
        return {
            "transcript_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"row-{self.seq}")),
            "event_id": self.event_id,
            "bot_id": self.bot,
            "workspace_id": WORKSPACE,
            "conversation_id": self.conversation,
            "thread_id": None,
            "role": self.role,
            "item_type": "message",
            "content": self.content,
            "content_json": self.content_json,
            "seq": self.seq,
            "cursor": str(self.seq),
            "created_at": self.created_at,
            "metadata": self.metadata,
            "attachment_refs": self.attachment_refs if attachments else [],
        }


class Transcript:
    """All rows of all conversations."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._next = 1

    def add(
        self,
        conversation: str,
        role: str,
        content: str | None,
        content_json: Json | None,
        *,
        event_id: str | None = None,
        attachment_refs: list[Json] | None = None,
        metadata: Json | None = None,
        bot: str = BOT,
    ) -> Row:
        if content and len(content) > CONTENT_LIMIT:
            content = content[: CONTENT_LIMIT - 3] + "..."
        row = Row(
            seq=self._next,
            conversation=conversation,
            role=role,
            event_id=event_id or str(uuid.uuid4()),
            content=content,
            content_json=copy.deepcopy(content_json),
            attachment_refs=attachment_refs or [],
            metadata=metadata or {},
            bot=bot,
            created_at=int(time.time()),
        )
        self._next += 1
        self.rows.append(row)
        return row

    def copy(self, row: Row) -> Row:
        """Adds a row that says the same under a number and an event of its own."""
        return self.add(row.conversation, row.role, row.content, row.content_json, metadata=row.metadata, bot=row.bot)

    def skip(self, count: int) -> None:
        """Other chats used up `count` numbers: cursors of one conversation are not consecutive."""
        self._next += count

    def of(self, conversation: str, bot: str = BOT) -> list[Row]:
        """Visible rows, oldest first."""
        return [row for row in self.rows if row.conversation == conversation and row.bot == bot and not row.hidden]

    def latest_cursor(self, conversation: str) -> str | None:
        """Neither resets nor bots are looked at (transcript_store.py:get_latest_cursor)."""
        return next((str(row.seq) for row in reversed(self.rows) if row.conversation == conversation), None)

    def hide(self, conversation: str) -> None:
        for row in self.of(conversation):
            row.hidden = True

    def page(self, conversation: str, request: Json) -> Json:
        """One page. Raises ValueError for a cursor that is no number and TypeError for a limit of None, as the Host
        does (agent_pull_actions.py:history_page, transcript_store.py:page_transcript)."""
        before = int(request["before_cursor"]) if request.get("before_cursor") else None
        after = int(request["after_cursor"]) if request.get("after_cursor") else None
        limit = min(request.get("limit", 50), PAGE_LIMIT)
        direction = request.get("direction", "backward")
        rows = self.of(conversation)
        if direction == "backward" and before is not None:
            chosen = [row for row in reversed(rows) if row.seq < before]
        elif direction == "forward" and after is not None:
            chosen = [row for row in rows if row.seq > after]
        else:
            chosen = rows[::-1]
        # A SQL limit below zero means no limit, and the slice that follows then drops the newest.
        fetched = chosen if limit + 1 < 0 else chosen[: limit + 1]
        items = [row.item(attachments=bool(request.get("include_attachments"))) for row in fetched[:limit]]
        has_more = len(fetched) > limit
        return {
            "items": items,
            "next_cursor": str(items[-1]["seq"]) if items and has_more else None,
            "prev_cursor": str(items[0]["seq"]) if items else None,
            "has_more": has_more,
        }

    def search(self, conversation: str, request: Json, bot: str = BOT) -> Json:
        """LIKE over the cut text, newest first (transcript_store.py:search_transcript)."""
        wanted = str(request["query"]).lower()
        roles = (request.get("filters") or {}).get("roles")
        found = [
            row
            for row in reversed(self.of(conversation, bot))
            if wanted in (row.content or "").lower() and (roles is None or row.role in roles)
        ][: request.get("top_k", 10)]
        items = [row.item(attachments=True) for row in found]
        return {"items": items, "total_count": len(items), "query": request["query"]}


def hollow(part: Any) -> Any:
    """A content part without its inline payload (run_journal.py:_sanitize_content_item)."""
    if not isinstance(part, dict):
        return part
    part = dict(part)
    url = part.get("image_url")
    for key in ("image_base64", "file_base64"):
        if part.get(key):
            part[key] = None
            part["content_redacted"] = True
    if isinstance(url, dict) and str(url.get("url") or "").startswith("data:"):
        # Not None: a part like this no longer validates as a ContentElement.
        part["image_url"] = {**url, "url": None}
        part["content_redacted"] = True
    return part


# Host state of a binding: langbot/pkg/agent/runner/persistent_state_store.py, plugin/agent_state_actions.py.

SCOPES = ("conversation", "actor", "subject", "runner")
VALUE_LIMIT = 256 * 1024
LIST_LIMIT = 100


class StateRefused(ValueError):
    """The Host refuses the call with this text."""


class State:
    """Values by scope, owner of the scope (conversation, actor or subject id; "" for the runner) and key."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[str, str]] = {}

    def get(self, scope: str, owner: str, key: str) -> Any:
        """The value, None when there is none."""
        found = self._values.get((scope, owner), {}).get(key)
        return None if found is None else json.loads(found)

    def set(self, scope: str, owner: str, key: str, value: Any) -> None:
        """Raises `StateRefused` over 256 KiB of JSON or for what is no JSON."""
        try:
            text = json.dumps(value)
        except (TypeError, ValueError) as error:
            raise StateRefused(f"Value is not JSON-serializable: {error}") from error
        size = len(text.encode("utf-8"))
        if size > VALUE_LIMIT:
            raise StateRefused(f"Value size {size} bytes exceeds limit {VALUE_LIMIT} bytes")
        self._values.setdefault((scope, owner), {})[key] = text

    def delete(self, scope: str, owner: str, key: str) -> bool:
        return self._values.get((scope, owner), {}).pop(key, None) is not None

    def keys(
        self, scope: str, owner: str, prefix: str | None = None, limit: int = LIST_LIMIT
    ) -> tuple[list[str], bool]:
        """Sorted keys and whether there are more."""
        found = sorted(key for key in self._values.get((scope, owner), {}) if key.startswith(prefix or ""))
        return found[:limit], len(found) > limit

    def snapshot(self, owners: dict[str, str | None]) -> Json:
        """What `ctx.state` holds at the start of a run: all four scopes, whole values."""
        return {
            scope: {}
            if owner is None
            else {key: self.get(scope, owner, key) for key in self._values.get((scope, owner), {})}
            for scope, owner in ((scope, owners.get(scope)) for scope in SCOPES)
        }

    def forget_conversation(self, conversation: str) -> None:
        """A reset deletes the conversation scope only (context_reset.py:reset_runner_context)."""
        self._values.pop(("conversation", conversation), None)
