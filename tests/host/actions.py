"""The Host's answers to the plugin's calls: one method `on_<action>` for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from . import provider, tokens
from .run_record import RunRecord
from .script import Json, Model
from .texts import RequesterError, model_error
from .tools import Tool, ToolFailed, execute, rerank
from .transcript import LIST_LIMIT, SCOPES, StateRefused
from .world import World

# Which run a call belongs to and what was granted to it.


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


# Calls for granted resources: models, tools, knowledge bases.

_NATIVE = frozenset({"exec", "read", "write", "edit", "glob", "grep"})


class ResourceActions(Sessions):
    """Models, tools and knowledge of a run."""

    def _model(self, data: Json, operation: str) -> tuple[RunRecord, Model]:
        model_id = data["llm_model_uuid"]
        record = self.granted(data, "models", model_id, operation)
        model = self.world.model(model_id)
        if model is None:
            raise ActionRefused(f"LLM model with llm_model_uuid {model_id} not found")
        return record, model

    # Models

    async def on_get_langbot_version(self, data: Json) -> Json:
        return {"version": "v4.11.2", "api_features": self.world.features}

    async def on_count_tokens(self, data: Json) -> Json:
        _, model = self._model(data, "count_tokens")
        provider.check_level(model, data.get("reasoning_level"), data.get("extra_args", {}))
        if not model.counting:
            text = model_error(f"{model.id} does not support token counting", self.world.language)
            raise ActionRefused(f"Token counting failed: {text}")
        messages = provider.convert(data["messages"], model.family)
        return {"tokens": tokens.count(messages, data.get("funcs", []))}

    def _removes_thinking(self, data: Json) -> bool:
        """An explicit value wins, also False; else the pipeline's (plugin/handler.py:_resolve_remove_think)."""
        if "remove_think" in data:
            return bool(data["remove_think"])
        return self.world.mode == "pipeline" and self.world.pipeline_remove_think

    async def on_invoke_llm(self, data: Json) -> Json:
        record, model = self._model(data, "invoke")
        request = provider.request_of(model, data, stream=False, thinking_removed=self._removes_thinking(data))
        record.requests.append(request)
        reply = await provider.ask(model, request, self.world.language)
        record.usage_slot = provider.usage_of(reply, request)
        answered: Json = {"message": provider.whole_message(reply, request)}
        usage, record.usage_slot = record.usage_slot, None
        if usage is not None:
            answered["usage"] = usage
        return answered

    async def stream(self, data: Json) -> AsyncGenerator[Json, None]:
        """The events of INVOKE_LLM_STREAM. Usage travels through one slot of the run, so that two streams at once in
        one run can swap or lose it (plugin/handler.py:_pop_query_llm_usage)."""
        record, model = self._model(data, "stream")
        request = provider.request_of(model, data, stream=True, thinking_removed=self._removes_thinking(data))
        record.requests.append(request)
        try:
            reply = await provider.ask(model, request, self.world.language)
            async for event in provider.stream(reply, request, self.world.language):
                if _stops(event):
                    record.usage_slot = provider.usage_of(reply, request)
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            model.aborted += 1
            raise
        usage, record.usage_slot = record.usage_slot, None
        if usage is not None:
            yield {"usage": usage}

    async def on_invoke_rerank(self, data: Json) -> Json:
        model_id = data["rerank_model_uuid"]
        self.granted(data, "models", model_id, "rerank")
        model = self.world.model(model_id)
        if model is None:
            raise ActionRefused(f"Rerank model with rerank_model_uuid {model_id} not found")
        model.reranked.append((data["query"], list(data["documents"])))
        if model.rerank_error is not None:
            inner = RequesterError(model_error(model.rerank_error, self.world.language))
            raise ActionRefused(f"[RerankError/RequesterError] [rerank_model_uuid={model_id}] {inner}")
        return {"results": rerank(model, data["query"], data["documents"], data.get("top_k"))}

    # Tools and knowledge

    def _tool(self, data: Json, operation: str) -> tuple[RunRecord, Tool]:
        name = data["tool_name"]
        record = self.granted(data, "tools", name, operation)
        tool = next((one for one in self.world.granted_tools(record.incoming) if one.name == name), None)
        if tool is None:
            raise ActionRefused(f"Tool {name} not found")
        return record, tool

    async def on_get_tool_detail(self, data: Json) -> Json:
        _, tool = self._tool(data, "detail")
        detail = {"name": tool.name, "description": tool.description, "human_desc": tool.description}
        return {"tool": {**detail, "parameters": tool.parameters or {}}}

    async def on_call_tool(self, data: Json) -> Json:
        record, tool = self._tool(data, "call")
        if "parameters" not in data:
            raise ActionRefused("parameters is required for Runner tool calls")
        try:
            if tool.type == "builtin" and tool.name in _NATIVE:
                self.world.box.bound(record.run_id)
            return {"result": await execute(tool, data["parameters"] or {})}
        except ToolFailed as failure:
            raise ActionRefused(str(failure)) from failure
        except Exception as error:  # the Host turns whatever its loaders raise into one text
            raise ActionRefused(f"Failed to execute tool {tool.name}: {error}") from error

    async def on_retrieve_knowledge_base(self, data: Json) -> Json:
        base_id = data["kb_id"]
        self.granted(data, "knowledge_bases", base_id, "retrieve")
        base = next((one for one in self.world.knowledge if one.id == base_id), None)
        if base is None:
            raise ActionRefused(f"Knowledge base {base_id} not found")
        try:
            return {"results": await base.retrieve(data["query_text"], data.get("top_k", 5))}
        except Exception as error:  # plugin/handler.py:_make_rag_error_response catches all
            raise ActionRefused(f"[RetrievalError/{type(error).__name__}] [kb_id={base_id}] {error}") from error


def _stops(event: Json) -> bool:
    """Whether this is the chunk with the finish reason, with which providers report usage."""
    fields = (event.get("chunk") or {}).get("provider_specific_fields") or {}
    return "finish_reason" in fields


# Calls for what belongs to a run: prompt, history, events, steering, state, storage, ledger.


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


# The Host's answers to the plugin's calls: one method `on_<action>` for each.
#
# `ActionRefused` stands for an `ActionResponse.error(text)` of the Host; any other exception for one its handler turns
# into text. The wrapping is in `host_handler`.


class Actions(ResourceActions, RunActions):
    """All answers for the runs of one world."""

    async def answer(self, action: str, data: Json) -> Json:
        """The reply data of a unary action. Raises ActionRefused, or what the Host's own code would raise."""
        method = self.world.answers.get(action) or getattr(self, f"on_{action}", None)
        if method is None:
            raise ActionRefused(f"Action {action} is not part of the test host")
        answered: Json = await method(data)
        return answered

    # Box

    def _in_box(self, data: Json) -> RunRecord:
        return self.session(data, "box")

    async def on_get_box_status(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.status()

    async def on_list_boxes(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.sessions()

    async def on_acquire_box(self, data: Json) -> Json:
        self._in_box(data)
        return self.world.box.acquire(data)

    async def on_bind_box(self, data: Json) -> Json:
        return self.world.box.bind(self._in_box(data).run_id, data["box_id"])

    async def on_import_box_attachments(self, data: Json) -> Json:
        record = self._in_box(data)
        wanted = data.get("attachment_ids")
        return self.world.box.import_attachments(record.run_id, list(record.attachments), wanted)

    async def on_export_box_files(self, data: Json) -> Json:
        return self.world.box.export(self._in_box(data).run_id, data.get("paths"))

    # Replies in agent mode

    async def on_reply_stream(self, data: Json) -> Json:
        record = self.granted(data, "tools", "event_reply", "call")
        return {"result": record.reply_streams.apply(data)}

    async def on_call_platform_api(self, data: Json) -> Json:
        record = self.granted(data, "tools", data.get("context_tool") or data["action"], "call")
        if data.get("file_ids"):
            self.world.platform.files += self.world.box.take(record.run_id, data["file_ids"])
        parts = (data.get("params") or {}).get("message") or []
        text = "".join(str(part.get("text") or "") for part in parts if part.get("type") == "Plain")
        if text:
            self.world.platform.replies.append(text)
        return {"result": {"ok": True, "mock": False, "action": data["action"]}}
