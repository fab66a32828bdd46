"""Calls for what belongs to a run: prompt, history, events, steering, state, storage, ledger."""

from __future__ import annotations

from .run_record import RunRecord
from .script import Json
from .sessions import ActionRefused, Sessions, page_of, positive
from .state import LIST_LIMIT, SCOPES, StateRefused


class RunActions(Sessions):
    """What a run may read and write of its own."""

    # Prompt, history, events

    async def on_get_prompt(self, data: Json) -> Json:
        self.session(data, "prompt_get")
        return {"prompt": self.world.prompt}

    def _conversation(self, record: RunRecord, data: Json) -> str:
        wanted, own = data.get("conversation_id"), record.incoming.conversation or ""
        if wanted and wanted != own:
            raise ActionRefused("Conversation does not belong to the current run")
        return own

    async def on_history_page(self, data: Json) -> Json:
        record = self.session(data, "history_page")
        return self.world.transcript.page(self._conversation(record, data), data)

    async def on_history_search(self, data: Json) -> Json:
        record = self.session(data, "history_search")
        return self.world.transcript.search(record.incoming.conversation or "", data)

    async def on_event_get(self, data: Json) -> Json:
        record = self.session(data, "event_get")
        for event in self.world.events:
            if event["event_id"] == data["event_id"] and event["conversation_id"] == record.incoming.conversation:
                return event
        raise ActionRefused(f"Event {data['event_id']} not found")

    async def on_event_page(self, data: Json) -> Json:
        record = self.session(data, "event_page")
        own = [one for one in self.world.events if one["conversation_id"] == record.incoming.conversation]
        before = int(data["before_cursor"]) if data.get("before_cursor") else None
        rows = [one for one in reversed(own) if before is None or one["seq"] < before]
        limit = positive(data.get("limit")) or 50
        return page_of(rows, limit, backwards=False)

    # Steering, state, storage

    async def on_steering_pull(self, data: Json) -> Json:
        limit = positive(data.get("limit"))
        record = self.session(data, "steering_pull")
        one = str(data.get("mode") or "all").lower() in ("one", "one-at-a-time", "one_at_a_time")
        count = 1 if one else min(limit or 100, 100)
        items, record.steering_queue[:] = record.steering_queue[:count], record.steering_queue[count:]
        record.steering.extend((item["event"]["event_id"], "injected") for item in items)
        return {"items": items}

    def _state_owner(self, data: Json) -> str:
        record = self.session(data, "state")
        scope = data.get("scope")
        if not scope:
            raise ActionRefused("scope is required")
        if scope not in SCOPES:
            raise ActionRefused(f'Scope "{scope}" is not enabled by binding policy')
        owner = self.world.owners(record.incoming)[scope]
        if owner is None:
            raise ActionRefused(f'Scope key not available for scope "{scope}"')
        return owner

    def _state_key(self, data: Json) -> tuple[str, str, str]:
        owner = self._state_owner(data)
        if not data.get("key"):
            raise ActionRefused("key is required")
        return data["scope"], owner, data["key"]

    async def on_state_get(self, data: Json) -> Json:
        return {"value": self.world.state.get(*self._state_key(data))}

    async def on_state_set(self, data: Json) -> Json:
        try:
            self.world.state.set(*self._state_key(data), data.get("value"))
        except StateRefused as refusal:
            raise ActionRefused(str(refusal)) from refusal
        return {"success": True}

    async def on_state_delete(self, data: Json) -> Json:
        return {"success": self.world.state.delete(*self._state_key(data))}

    async def on_state_list(self, data: Json) -> Json:
        limit = data.get("limit", LIST_LIMIT)
        limit = min(limit, LIST_LIMIT) if isinstance(limit, int) and limit > 0 else LIST_LIMIT
        keys, more = self.world.state.keys(data["scope"], self._state_owner(data), data.get("prefix"), limit)
        return {"keys": keys, "has_more": more}

    def _store(self, data: Json, name: str) -> dict[str, str]:
        record = self.session(data)
        if not record.ctx["resources"]["storage"][f"{name}_storage"]:
            raise ActionRefused(f"storage {name} is not authorized for this agent run")
        return self.world.storage[name]

    async def on_set_plugin_storage(self, data: Json) -> Json:
        self._store(data, "plugin")[data["key"]] = data["value_base64"]
        return {}

    async def on_get_plugin_storage(self, data: Json) -> Json:
        return {"value_base64": _stored(self._store(data, "plugin"), data["key"])}

    async def on_get_plugin_storage_keys(self, data: Json) -> Json:
        return {"keys": list(self._store(data, "plugin"))}

    async def on_delete_plugin_storage(self, data: Json) -> Json:
        self._store(data, "plugin").pop(data["key"], None)
        return {}

    # The run itself

    def _target(self, data: Json, api: str) -> RunRecord:
        own = self.session(data, api)
        target = self.world.run(data.get("target_run_id") or own.run_id)
        if target is None:
            raise ActionRefused(f"Run {data.get('target_run_id')} not found")
        if target.incoming.conversation != own.incoming.conversation:
            raise ActionRefused(f"Run {target.run_id} is not accessible by this run")
        return target

    async def on_run_get(self, data: Json) -> Json:
        return self._target(data, "run_get").ledger_row()

    async def on_run_cancel(self, data: Json) -> Json:
        target = self._target(data, "run_cancel")
        target.request_cancel(data.get("reason"))
        return target.ledger_row()

    async def on_run_list(self, data: Json) -> Json:
        record = self.session(data, "run_list")
        own = [run for run in self.world.runs if run.incoming.conversation == record.incoming.conversation]
        rows = [
            run.ledger_row()
            for run in reversed(own)
            if data.get("statuses") in (None, []) or run.status in data["statuses"]
        ]
        return page_of(rows, positive(data.get("limit")) or 50, "id")

    async def on_run_events_page(self, data: Json) -> Json:
        target = self._target(data, "run_events_page")
        after = int(data["after_cursor"]) if data.get("after_cursor") else 0
        rows = [
            {
                "id": index,
                "run_id": target.run_id,
                "sequence": index,
                "type": result["type"],
                "data": result["data"],
                "usage": result.get("usage"),
                "created_at": target.incoming.time,
                "source": "runner",
                "artifact_refs": [],
                "metadata": {},
            }
            for index, result in enumerate(target.results, 1)
            if index > after
        ]
        if data.get("direction") == "backward":
            rows.reverse()
        return page_of(rows, positive(data.get("limit")) or 50, "sequence")


def _stored(store: dict[str, str], key: str) -> str:
    if key not in store:
        raise ActionRefused(f"Storage with key {key} not found")
    return store[key]
