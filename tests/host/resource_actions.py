"""Calls for granted resources: models, tools, knowledge bases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from . import provider, tokens
from .knowledge import rerank
from .run_record import RunRecord
from .script import Json, Model
from .sessions import ActionRefused, Sessions
from .texts import RequesterError, model_error
from .tools import Tool, ToolFailed, execute

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
