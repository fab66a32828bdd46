"""`ctx` as the Host fills it: langbot/pkg/agent/runner/context_builder.py, query_entry_adapter.py, orchestrator.py."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

from .chat import Incoming
from .platform import CAPABILITIES
from .script import Json
from .transcript import BOT, WORKSPACE
from .world import World

DEFAULT_TIMEOUT = 300
VERSION = "v4.11.2"
CHAT_OPERATIONS = ("invoke", "stream", "count_tokens")
_NO_RERANK = ("", "__none__", "__none")


def deadline_of(config: Json) -> float | None:
    """Epoch seconds from the `timeout` the Runner reads too (context_builder.py:_build_deadline_from_binding)."""
    value = config.get("timeout", DEFAULT_TIMEOUT)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return time.time() + seconds if seconds > 0 else None


def build(world: World, incoming: Incoming, run_id: str) -> Json:
    """The context of one run, JSON-ready."""
    pipeline = world.mode == "pipeline"
    variables = _variables(incoming) if pipeline else {"query_id": incoming.number}
    trigger = {"type": incoming.event_type, "source": incoming.source, "timestamp": incoming.time}
    return {
        "run_id": run_id,
        "trigger": trigger,
        "event": incoming.event,
        "conversation": _conversation(incoming),
        "actor": incoming.actor,
        "subject": incoming.subject,
        "input": _inline_images_once(incoming.input(images=world.keeps_images)),
        "delivery": _delivery(world, incoming),
        "resources": _resources(world, incoming),
        "context": _access(world, incoming),
        "state": _state(world, incoming),
        "runtime": _runtime(world, run_id),
        "variables": variables,
        "config": copy.deepcopy(world.config),
        "adapter": {"extra": {"params": _parameters(variables)} if pipeline else {}},
        "metadata": {},
    }


def _state(world: World, incoming: Incoming) -> Json:
    snapshot = world.state.snapshot(world.owners(incoming))
    if incoming.conversation:
        snapshot["conversation"].setdefault("external.conversation_id", incoming.conversation)
    return snapshot


def _inline_images_once(given: Json) -> Json:
    inline = {part["image_base64"] for part in given["contents"] if part["type"] == "image_base64"}
    for one in given["attachments"]:
        if one["content"] in inline:
            one["content"] = None
    return given


def _conversation(incoming: Incoming) -> Json | None:
    if incoming.conversation is None:
        return None
    return {
        "conversation_id": incoming.conversation,
        "thread_id": None,
        "launcher_type": None,
        "launcher_id": None,
        "sender_id": incoming.sender,
        "bot_id": BOT,
        "workspace_id": WORKSPACE,
        "session_id": None,
    }


def _variables(incoming: Incoming) -> Json:
    """Public scalars of the query (preproc.py:process)."""
    kind, launcher_id = incoming.launcher
    own: Json = {
        "launcher_type": kind,
        "launcher_id": launcher_id,
        "sender_id": incoming.sender,
        "session_id": f"{kind}_{launcher_id}",
        "msg_create_time": incoming.time,
        "group_name": f"Group {launcher_id}" if kind == "group" else "",
        "sender_name": incoming.name,
        "user_message_text": incoming.text or "",
        "query_id": incoming.number,
    }
    given = {**own, **incoming.variables}
    return {
        key: value for key, value in given.items() if not key.startswith("_") and isinstance(value, str | int | float)
    }


def _parameters(variables: Json) -> Json:
    """Pipeline variables that may leave the Host (query_entry_adapter.py:build_params): names of secrets may not."""
    secret = ("secret", "token", "key", "password", "credential")
    kept = {name: value for name, value in variables.items() if not any(word in name.lower() for word in secret)}
    kept.pop("query_id", None)
    return {**kept, "conversation_id": None}


def _delivery(world: World, incoming: Incoming) -> Json:
    pipeline = world.mode == "pipeline"
    capabilities = _capabilities() if pipeline else {**_capabilities(), "event_type": incoming.event_type}
    return {
        "automatic_reply": pipeline,
        "surface": "platform",
        "reply_target": incoming.reply_target,
        "supports_streaming": pipeline,
        "supports_edit": False,
        "supports_reaction": False,
        "max_message_size": None,
        "platform_capabilities": capabilities,
        **({"interactions": CAPABILITIES} if world.interactions else {}),
    }


def _capabilities() -> Json:
    return {"adapter": "TestAdapter", "supported_apis": ["send_message", "reply_message"]}


def _resources(world: World, incoming: Incoming) -> Json:
    storage = world.manifest.permissions.storage
    return {
        "models": _models(world),
        "tools": [tool.resource for tool in world.granted_tools(incoming)],
        "knowledge_bases": _knowledge(world),
        "skills": [skill.resource for skill in world.skills.all.values()],
        "storage": {
            "plugin_storage": "plugin" in storage,
            "workspace_storage": "workspace" in storage and world.workspace_storage,
        },
        "platform_capabilities": {**_capabilities(), "authorized_tools": [], "unavailable_tools": []},
    }


def _models(world: World) -> list[Json]:
    """Primary, fallbacks, rerank model: those that exist (resource_builder.py)."""
    declared = set(world.manifest.permissions.models)
    configured = world.config.get("model")
    wanted: list[Any] = [configured]
    if isinstance(configured, dict):
        wanted = [configured.get("primary"), *(configured.get("fallbacks") or ())]
    found: list[Json] = []
    for model_id in dict.fromkeys(one for one in wanted if isinstance(one, str) and one):
        model = world.model(model_id)
        if model is not None and not model.rerank:
            operations = [str(one) for one in CHAT_OPERATIONS if one in declared & model.operations]
            found.append(_model(model_id, operations))
    rerank_id = world.config.get("rerank-model")
    if isinstance(rerank_id, str) and rerank_id not in _NO_RERANK and world.model(rerank_id) and "rerank" in declared:
        found.append(_model(rerank_id, ["rerank"]))
    return found


def _model(model_id: str, operations: Sequence[str]) -> Json:
    return {"model_id": model_id, "model_type": None, "provider": None, "operations": list(operations)}


def _knowledge(world: World) -> list[Json]:
    if not world.manifest.capabilities.knowledge_retrieval:
        return []
    chosen = world.config.get("knowledge-bases")
    operations = [one for one in ("list", "retrieve") if one in world.manifest.permissions.knowledge_bases]
    return [
        {"kb_id": base.id, "kb_name": base.name or base.id, "kb_type": None, "operations": operations}
        for base in world.knowledge
        if isinstance(chosen, list) and base.id in chosen
    ]


def _access(world: World, incoming: Incoming) -> Json:
    """Cursors are read before the message is stored, and look at neither resets nor bots
    (context_builder.py:_build_context_access)."""
    latest = world.transcript.latest_cursor(incoming.conversation) if incoming.conversation else None
    return {
        "conversation_id": incoming.conversation,
        "thread_id": None,
        "latest_cursor": latest,
        "event_seq": None,
        "transcript_seq": int(latest) if latest else None,
        "has_history_before": latest is not None,
        "inline_policy": {
            "mode": "current_event",
            "delivered_count": 0,
            "source_total_count": None,
            "messages_complete": False,
            "reason": "current_event_only",
        },
        "available_apis": _apis(world, incoming),
    }


def _apis(world: World, incoming: Incoming) -> Json:
    allowed, in_chat = world.manifest.permissions, incoming.conversation is not None
    replies = any(tool.name == "event_reply" for tool in world.granted_tools(incoming))
    apis = {
        "box": True,
        "reply_stream": world.mode == "agent" and replies,
        "prompt_get": True,
        "history_page": "page" in allowed.history and in_chat,
        "history_search": "search" in allowed.history and in_chat,
        "event_get": "get" in allowed.events,
        "event_page": "page" in allowed.events and in_chat,
        "state": True,
        "storage": "plugin" in allowed.storage or ("workspace" in allowed.storage and world.workspace_storage),
        "steering_pull": world.manifest.capabilities.steering and in_chat,
        "run_get": True,
        "run_list": in_chat,
        "run_events_page": True,
        "run_cancel": True,
        "run_append_result": False,
        "run_finalize": False,
    }
    return {name: granted and name not in world.withheld_apis for name, granted in apis.items()}


def _runtime(world: World, run_id: str) -> Json:
    metadata = {
        "bot_id": BOT,
        "workspace_id": WORKSPACE,
        "streaming_supported": world.mode == "pipeline",
        # None in 4.11.2 whatever the model is; set it to imitate a later Host.
        "model_context_window_tokens": world.context_window,
    }
    return {
        "langbot_version": VERSION,
        "trace_id": run_id,
        "deadline_at": deadline_of(world.config),
        "metadata": metadata,
    }
