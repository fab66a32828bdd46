"""Which run a call belongs to and what was granted to it."""

from __future__ import annotations

from typing import Any

from .run_record import RunRecord
from .script import Json
from .world import World


class ActionRefused(Exception):
    """The Host answers with an error of this text."""


def positive(value: Any) -> int | None:
    """A limit, at most 100 (agent_state_actions.py:steering_pull)."""
    if value is None:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise ActionRefused("limit must be an integer") from None
    if number <= 0:
        raise ActionRefused("limit must be > 0")
    return min(number, 100)


class Sessions:
    """Looks up the run of a call as plugin/handler.py:_validate_run_authorization and
    plugin/agent_run_support.py:_validate_agent_run_session do."""

    def __init__(self, world: World) -> None:
        self.world = world

    def session(self, data: Json, api: str | None = None) -> RunRecord:
        record = self.world.run(data.get("run_id"))
        if record is None or not record.active:
            raise ActionRefused(f"Run session {data.get('run_id')} not found or expired")
        if api is not None and not record.ctx["context"]["available_apis"][api]:
            raise ActionRefused(f"{api} access not authorized")
        return record

    def granted(self, data: Json, kind: str, name: str, operation: str) -> RunRecord:
        """A run to which resource and operation were granted (plugin/handler.py:_validate_run_authorization)."""
        record = self.session(data)
        key = {"models": "model_id", "tools": "tool_name", "knowledge_bases": "kb_id"}[kind]
        for resource in record.ctx["resources"][kind]:
            if resource[key] == name and operation in (resource["operations"] or (operation,)):
                return record
        raise ActionRefused(f"{kind[:-1]} {name} is not authorized for operation {operation} for this agent run")


def page_of(rows: list[Json], limit: int, cursor: str = "seq", *, backwards: bool = True) -> Json:
    """A page of `rows`. `backwards`: it names a cursor for the way back; pages of events do not."""
    shown = rows[:limit]
    more = len(rows) > limit
    return {
        "items": shown,
        "next_cursor": str(shown[-1][cursor]) if shown and more else None,
        "prev_cursor": str(shown[0][cursor]) if shown and backwards else None,
        "has_more": more,
    }
