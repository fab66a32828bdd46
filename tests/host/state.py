"""Host state of a binding: langbot/pkg/agent/runner/persistent_state_store.py, plugin/agent_state_actions.py."""

from __future__ import annotations

import json
from typing import Any

from .script import Json

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
