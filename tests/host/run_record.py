"""One run, while it goes on and afterwards."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .chat import Card, Chat, Incoming
from .platform import ReplyStreams
from .plugin import RUNNER_ID
from .records import Call, Calls
from .script import Json, ModelRequest
from .transcript import BOT, WORKSPACE

CLOSING_SECONDS = 5.0
PROCESSOR = "pipeline-1"

# Columns that only runtimes outside the plugin system use.
_NEVER_SET = (
    "thread_id",
    "queue_name",
    "requested_runtime_id",
    "claimed_by_runtime_id",
    "claim_token",
    "claim_lease_expires_at",
    "last_claimed_at",
    "cost",
)


@dataclass(eq=False)
class RunRecord:
    """What happened in a run. It fills while the run goes on; `await wait()` for its end.

    `results`: the accepted `RunnerResult`s as dicts, in order; `dropped`: those the Host threw away, with the reason.
    `status`: running, completed, failed, cancelled or timeout; `error`/`code`: the Host's failure text and code.
    `usage`: of the terminal result. `steering`: audit words of each steering message, `queued`, `injected`, `dropped`.
    """

    run_id: str
    incoming: Incoming
    ctx: Json
    chat: Chat
    reply_streams: ReplyStreams
    results: list[Json] = field(default_factory=list)
    dropped: list[tuple[Json, str]] = field(default_factory=list)
    status: str = "running"
    status_reason: str | None = None
    error: str | None = None
    code: str | None = None
    usage: Json | None = None
    calls: Calls = field(default_factory=Calls)
    requests: list[ModelRequest] = field(default_factory=list)
    steering_queue: list[Json] = field(default_factory=list)
    steering: list[tuple[str, str]] = field(default_factory=list)
    state_errors: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    cancel_requested_at: int | None = None
    number: int = 0
    usage_slot: Json | None = None
    task: asyncio.Task[None] | None = None
    runner_closed: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    # What the person in the chat got

    @property
    def cards(self) -> list[Card]:
        """Messages in the chat, a failure hint among them."""
        return self.chat.cards

    @property
    def answer(self) -> str | None:
        """The text of the last message in the chat, None when there is none."""
        return self.cards[-1].text if self.cards else None

    @property
    def notice(self) -> str | None:
        """The Host's own failure hint, if it was shown."""
        return self.chat.notice

    # What the Runner said

    def of(self, *types: str) -> list[Json]:
        """The `data` of the results of some types."""
        return [result["data"] for result in self.results if result["type"] in types]

    @property
    def types(self) -> list[str]:
        return [str(result["type"]) for result in self.results]

    @property
    def deltas(self) -> list[str]:
        """Texts of the `message.delta`s."""
        return [str(data["chunk"].get("content") or "") for data in self.of("message.delta")]

    @property
    def completed(self) -> list[Json]:
        """Messages of the `message.completed`s: there should be one."""
        return [data["message"] for data in self.of("message.completed")]

    @property
    def final_text(self) -> str | None:
        """The text of the first completed message: what the transcript keeps."""
        return next((str(one.get("content") or "") for one in self.completed), None)

    @property
    def logs(self) -> list[str]:
        return [str(data["text"]) for data in self.of("processor.log")]

    @property
    def terminal(self) -> Json:
        """The result that ended the run. Raises StopIteration when none came over the wire."""
        return next(result for result in reversed(self.results) if result["type"] in ("run.completed", "run.failed"))

    @property
    def finish_reason(self) -> str | None:
        return next((data.get("finish_reason") for data in self.of("run.completed")), None)

    # While it goes on

    @property
    def active(self) -> bool:
        return self.status == "running"

    async def wait(self) -> RunRecord:
        """Waits until the run has ended and its Runner is closed, which comes a little later, and returns the record.

        Raises TimeoutError for a Runner that goes on for `CLOSING_SECONDS` after its run.
        """
        if self.task is not None:
            await asyncio.shield(self.task)
        async with asyncio.timeout(CLOSING_SECONDS):
            await self.runner_closed.wait()
        return self

    def news(self) -> None:
        self._news.set()

    async def until(self, action: str, count: int = 1) -> Call:
        """Waits until the plugin has made its `count`-th call of `action`. Raises TimeoutError."""
        await self._until(lambda: len(self.calls.of(action)) >= count)
        return self.calls.of(action)[count - 1]

    async def until_result(self, type_: str, count: int = 1) -> Json:
        """Waits until the `count`-th result of a type was accepted. Raises TimeoutError."""
        await self._until(lambda: len(self.of(type_)) >= count)
        return self.of(type_)[count - 1]

    async def _until(self, holds: Any) -> None:
        async with asyncio.timeout(5.0):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def request_cancel(self, reason: str | None = None) -> None:
        """Sets the flag that RUN_CANCEL sets (run_ledger_store.py:request_cancel)."""
        if self.cancel_requested_at is None:
            self.cancel_requested_at = int(time.time())
        self.status_reason = reason or self.status_reason

    @property
    def attachments(self) -> Sequence[Json]:
        given: list[Json] = self.ctx["input"]["attachments"]
        # The context leaves out what stands inline in the contents already; the Host still has it.
        bodies = [*self.incoming.images, *(one.content for one in self.incoming.attachments)]
        return [{**one, "content": body} for one, body in zip(given, bodies, strict=True)]

    def ledger_row(self) -> Json:
        """The run as `run_get` shows it (run_ledger_store.py:_run_to_dict)."""
        deadline = self.ctx["runtime"]["deadline_at"]
        finished = None if self.active else int(time.time())
        return {
            "id": self.number,
            "run_id": self.run_id,
            "event_id": self.incoming.event_id,
            "agent_id": PROCESSOR,
            "binding_id": f"agent_{PROCESSOR}_{RUNNER_ID}",
            "runner_id": RUNNER_ID,
            "conversation_id": self.incoming.conversation,
            "workspace_id": WORKSPACE,
            "bot_id": BOT,
            "status": self.status,
            "status_reason": self.status_reason,
            "created_at": self.incoming.time,
            "started_at": self.incoming.time,
            "finished_at": finished,
            "updated_at": int(time.time()),
            "deadline_at": None if deadline is None else int(deadline),
            "cancel_requested_at": self.cancel_requested_at,
            "priority": 0,
            "dispatch_attempts": 0,
            "usage": self.usage,
            "metadata": {
                "event_type": self.incoming.event_type,
                "source": self.incoming.source,
                "ingress_event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, self.incoming.event_id)),
                "processor_id": PROCESSOR,
                "processor_type": "agent" if self.incoming.platform else "pipeline",
            },
            **dict.fromkeys(_NEVER_SET),
        }
