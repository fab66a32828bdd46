"""Everything the Host holds: models, tools, knowledge, transcript, state, box, the runs that go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from langbot_plugin.api.entities.builtin.runner.manifest import RunnerManifest

from .box import Box
from .chat import Incoming
from .platform import Cards, Platform
from .run_record import RunRecord
from .script import Json, Model
from .texts import Language
from .tools import KnowledgeBase, Skills, Tool
from .transcript import State, Transcript

Mode = Literal["pipeline", "agent"]
STEERING_LIMIT = 100


@dataclass(eq=False)
class World:
    """The Host's side of one binding. Times are seconds.

    `idle_limit`: without a deadline a run ends after so long without a result (300 in production). `hop_limits`: how
    long the runtime waits for the Host, by action. `result_seconds` pass for each accepted result, as the ledger's
    writes do; `chat_seconds` for each text the chat shows.
    """

    manifest: RunnerManifest
    models: list[Model]
    tools: list[Tool]
    knowledge: list[KnowledgeBase]
    config: Json
    mode: Mode
    language: Language
    prompt: list[Json]
    box: Box
    skills: Skills
    streaming_adapter: bool
    pipeline_remove_think: bool
    context_window: int | None
    idle_limit: float
    hop_limits: dict[str, float]
    result_seconds: float
    chat_seconds: float
    features: list[str]
    allowed_platform_tools: list[str]
    withheld_apis: frozenset[str]
    workspace_storage: bool
    interactions: bool = False
    cards: Cards = field(default_factory=Cards)
    transcript: Transcript = field(default_factory=Transcript)
    state: State = field(default_factory=State)
    platform: Platform = field(default_factory=Platform)
    storage: dict[str, dict[str, str]] = field(default_factory=lambda: {"plugin": {}, "workspace": {}})
    events: list[Json] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    answers: dict[str, Callable[[Json], Awaitable[Json]]] = field(default_factory=dict)

    def model(self, model_id: str) -> Model | None:
        return next((model for model in self.models if model.id == model_id), None)

    @property
    def primary(self) -> Model | None:
        configured = self.config.get("model")
        wanted = configured.get("primary") if isinstance(configured, dict) else configured
        return next((model for model in self.models if model.id == wanted), None)

    def granted_tools(self, incoming: Incoming) -> list[Tool]:
        """Tools of a run: in a pipeline only when the primary can call functions or a fallback exists
        (preproc.py, resource_builder.py)."""
        if not self.manifest.capabilities.tool_calling:
            return []
        tools = [*self.box.tools(), *self.skills.tools(), *self.tools]
        if self.mode == "agent":
            return tools + self.platform.tools(incoming.event_type, self.allowed_platform_tools)
        configured = self.config.get("model")
        fallbacks = configured.get("fallbacks") if isinstance(configured, dict) else None
        able = self.primary is not None and "func_call" in self.primary.abilities
        return tools if able or any(fallbacks or ()) else []

    def run(self, run_id: Any) -> RunRecord | None:
        return next((record for record in self.runs if record.run_id == run_id), None)

    def active_run(self) -> str | None:
        """The id of the run that goes on, when there is exactly one."""
        active = [record.run_id for record in self.runs if record.active]
        return active[0] if len(active) == 1 else None

    def owners(self, incoming: Incoming) -> dict[str, str | None]:
        """Whose state each scope is (state_scope.py:build_state_context)."""
        return {
            "conversation": incoming.conversation,
            "actor": incoming.sender,
            "subject": str(incoming.number),
            "runner": "",
        }

    def claim(self, incoming: Incoming, runner_id: str) -> RunRecord | None:
        """Claims a message as steering for the oldest run of its conversation, None where there is none
        (orchestrator.py:try_claim_steering_from_query, session_registry.py)."""
        if self.mode == "agent" or incoming.event_type != "message.received" or not incoming.conversation:
            return None
        for record in self.runs:
            offered = record.ctx["context"]["available_apis"]["steering_pull"]
            if record.active and offered and record.incoming.conversation == incoming.conversation:
                if len(record.steering_queue) >= STEERING_LIMIT:
                    return None
                record.steering_queue.append(incoming.steering_item(record.run_id, runner_id))
                record.steering.append((incoming.event_id, "queued"))
                self.write_user_row(incoming)
                return record
        return None

    def write_user_row(self, incoming: Incoming) -> None:
        text, content_json, references = incoming.row(images=self.keeps_images)
        metadata = {"actor_type": "user", "actor_id": incoming.sender}
        assert incoming.conversation is not None
        self.transcript.add(
            incoming.conversation,
            "user",
            text,
            content_json,
            event_id=incoming.event_id,
            attachment_refs=references,
            metadata=metadata,
        )

    @property
    def keeps_images(self) -> bool:
        """Only the primary model's sight counts, never that of a fallback (preproc.py)."""
        primary = self.primary
        return self.manifest.capabilities.multimodal_input and (primary is None or "vision" in primary.abilities)
