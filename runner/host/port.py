"""The port to the Host: everything a run may ask for, and its one implementation over the SDK's proxy.

Values cross as the SDK's own types; failures cross as `HostCallFailed`, whatever the proxy raised. This is the only
module that knows the proxy (I1).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol, cast

from langbot_plugin.api.entities.builtin.provider.message import (
    LLMInvokeResult,
    LLMStreamEvent,
    Message,
)
from langbot_plugin.api.entities.builtin.provider.reasoning import ReasoningLevel
from langbot_plugin.api.entities.builtin.rag.context import RetrievalResultEntry
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner.box import BoxBinding, BoxFile, BoxStatus
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIException
from langbot_plugin.api.entities.builtin.runner.page_results import HistoryPage
from langbot_plugin.api.entities.builtin.runner.run_ledger import AgentRun
from langbot_plugin.api.entities.builtin.runner.steering import SteeringInputItem
from langbot_plugin.api.proxies.runner import PermissionDeniedError, RunnerAPIProxy
from pydantic import ValidationError

from runner.host.cancellation import is_cancelled
from runner.host.errors import HostCallFailed, HostFailure
from runner.host.events import Json

PAGE_LIMIT = 100
"""Rows the Host returns for one history page at most."""

STEERING_LIMIT = 100
"""Items the Host hands over in one steering pull at most."""

STREAM_CHARACTERS = 200_000
"""Characters one snapshot of a reply stream may hold."""

_HOP_TIMEOUT = "ActionCallTimeoutError"
"""What a time-out between runtime and Host looks like here: an error text."""

_PLACE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call to a model as the Host takes it. `level` None means the model's own setting (C3)."""

    model_id: str
    messages: Sequence[Message]
    tools: Sequence[LLMTool] = ()
    extra: Mapping[str, Json] | None = None
    level: ReasoningLevel | None = None
    remove_think: bool | None = None


class Host(Protocol):
    """What a run asks of the Host. Every method raises `HostCallFailed` and nothing else.

    Where the task that asks was cancelled, CancelledError comes out, whatever the Host answered (I4).
    """

    async def prompt(self) -> list[dict[str, Any]]:
        """The effective prompt: message dicts, possibly none (B1)."""

    async def history_page(self, *, before: str | None = None, after: str | None = None, limit: int) -> HistoryPage:
        """One page of the transcript: newest first, or oldest first when `after` is given; cursors are exclusive."""

    async def count_tokens(self, call: ModelCall) -> int:
        """Input tokens of a request as the provider would count them."""

    def stream(self, call: ModelCall) -> AsyncGenerator[LLMStreamEvent, None]:
        """One streamed model call. Close it: closing is what stops the provider."""

    async def invoke(self, call: ModelCall) -> LLMInvokeResult:
        """One model call that is not streamed."""

    async def call_tool(self, name: str, arguments: Mapping[str, Json]) -> Json:
        """Run one tool. The result is any JSON value."""

    def reply_stream(self) -> AbstractAsyncContextManager[Callable[[str], Awaitable[str]]]:
        """One streamed reply to the event: the function takes all of the text so far and tells the delivery.

        Leaving it finishes the reply; leaving it by an exception gives it up (J2). A text may be told twice: each takes
        the place of the one before.
        """

    async def reply_files(self, file_ids: Sequence[str]) -> Json:
        """Send exported files to where the event came from; what the platform says to that (J4)."""

    async def retrieve(self, base_id: str, query: str, top_k: int) -> list[RetrievalResultEntry]:
        """What one knowledge base finds, in the engine's order; entries nobody can read are left out (E1)."""

    async def rerank(self, model_id: str, query: str, documents: Sequence[str], top_k: int) -> list[int]:
        """Places in `documents` (at most 64), best first, each once (E1)."""

    async def box_status(self) -> BoxStatus:
        """Whether there is a sandbox, and the key a managed deployment demands (H1)."""

    async def acquire_box(self, key: str) -> str:
        """The id of the sandbox of this key, created where there is none."""

    async def bind_box(self, box_id: str) -> BoxBinding:
        """Make it the sandbox of this run."""

    async def import_attachment(self, ref: str) -> BoxFile:
        """Put one file of the message into the bound sandbox. One at a time: a batch fails as a whole (H2)."""

    async def export_files(self, paths: Sequence[str]) -> list[BoxFile]:
        """Take 1 to 20 files out; all files of this run that were accepted and not yet sent (H3)."""

    async def steering(self) -> list[SteeringInputItem]:
        """Follow-up messages claimed by this run since the last pull, oldest first (G1)."""

    async def cancel_requested(self) -> bool:
        """Whether the Host was asked to stop this run (G2)."""

    async def runs(self) -> list[AgentRun]:
        """The newest runs of this conversation by this runner, this one among them; at most 100, newest first."""

    async def has_taken(self, place: int) -> bool:
        """Whether the Host has come to this run's result number `place` (from 1), and so is done with those before."""

    async def get_state(self, key: str) -> Json:
        """A value of the conversation's state; None when there is none."""

    async def set_state(self, key: str, value: Json) -> None:
        """Store a value of at most 256 KiB in the conversation's state."""

    async def delete_state(self, key: str) -> bool:
        """Whether this call removed a value from the conversation's state: of several, one alone is told so."""


class ProxyHost:
    """The Host over the SDK's `RunnerAPIProxy` (D8). Holds nothing but the proxy."""

    def __init__(self, api: RunnerAPIProxy, ctx: RunnerContext) -> None:
        self._api = api
        self._can = ctx.context.available_apis

    async def prompt(self) -> list[dict[str, Any]]:
        with _failures("prompt"):
            return await self._api.get_prompt()

    async def history_page(self, *, before: str | None = None, after: str | None = None, limit: int) -> HistoryPage:
        with _failures("history_page"):
            # The proxy is annotated as a dict and returns the page.
            return cast(
                HistoryPage,
                await self._api.history_page(
                    before_cursor=before,
                    after_cursor=after,
                    limit=max(1, min(limit, PAGE_LIMIT)),
                    direction="backward" if after is None else "forward",
                ),
            )

    async def count_tokens(self, call: ModelCall) -> int:
        with _failures("count_tokens"):
            return await self._api.count_tokens(
                call.model_id,
                list(call.messages),
                list(call.tools),
                extra_args=dict(call.extra or {}),
                reasoning_level=call.level,
            )

    async def stream(self, call: ModelCall) -> AsyncGenerator[LLMStreamEvent, None]:
        with _failures("stream"):
            events: AsyncIterator[LLMStreamEvent] = self._api.invoke_llm_stream_events(
                call.model_id,
                list(call.messages),
                list(call.tools),
                extra_args=dict(call.extra or {}),
                remove_think=call.remove_think,
                reasoning_level=call.level,
            )
            ended = False
            async with aclosing(cast(AsyncGenerator[LLMStreamEvent, None], events)) as owned:
                try:
                    async for event in owned:
                        _mind_cancellation()
                        ended = ended or (event.chunk is not None and event.chunk.is_final)
                        yield event
                except ValidationError as error:
                    # The Host tells what was used behind the reply, and the reply is whole by then.
                    if not ended or not _is_about_usage(error):
                        raise

    async def invoke(self, call: ModelCall) -> LLMInvokeResult:
        with _failures("invoke"):
            return await self._api.invoke_llm_with_usage(
                call.model_id,
                list(call.messages),
                list(call.tools),
                extra_args=dict(call.extra or {}),
                remove_think=call.remove_think,
                reasoning_level=call.level,
            )

    async def call_tool(self, name: str, arguments: Mapping[str, Json]) -> Json:
        with _failures("call_tool"):
            # Annotated as a dict by the SDK; plugin and MCP tools return strings and lists too.
            return cast(Json, await self._api.call_tool(name, dict(arguments)))

    @asynccontextmanager
    async def reply_stream(self) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
        with _failures("reply_stream"):
            async with self._api.reply_stream() as stream:

                async def update(text: str) -> str:
                    with _failures("reply_stream"):
                        return str((await stream.update(text))["delivery"])

                yield update

    async def reply_files(self, file_ids: Sequence[str]) -> Json:
        with _failures("reply_files"):
            return cast(Json, await self._api.reply_files(list(file_ids)))

    async def retrieve(self, base_id: str, query: str, top_k: int) -> list[RetrievalResultEntry]:
        with _failures("retrieve"):
            return _entries(await self._api.retrieve_knowledge(base_id, query, top_k))

    async def rerank(self, model_id: str, query: str, documents: Sequence[str], top_k: int) -> list[int]:
        with _failures("rerank"):
            ranked = await self._api.invoke_rerank(model_id, query, list(documents), top_k)
            return _places(ranked, len(documents))

    async def box_status(self) -> BoxStatus:
        with _failures("box_status"):
            return await self._api.get_box_status()

    async def acquire_box(self, key: str) -> str:
        with _failures("acquire_box"):
            return (await self._api.acquire_box(key)).id

    async def bind_box(self, box_id: str) -> BoxBinding:
        with _failures("bind_box"):
            return await self._api.bind_box(box_id)

    async def import_attachment(self, ref: str) -> BoxFile:
        with _failures("import_attachment"):
            (file,) = await self._api.import_box_attachments([ref])
            return file

    async def export_files(self, paths: Sequence[str]) -> list[BoxFile]:
        with _failures("export_files"):
            return await self._api.export_box_files(list(paths))

    async def steering(self) -> list[SteeringInputItem]:
        if not self._can.steering_pull:
            return []
        with _failures("steering"):
            return (await self._api.steering_pull(limit=STEERING_LIMIT)).items

    async def cancel_requested(self) -> bool:
        if not self._can.run_get:
            return False
        with _failures("run_get"):
            return (await self._api.run_get()).cancel_requested_at is not None

    async def runs(self) -> list[AgentRun]:
        with _failures("run_list"):
            return (await self._api.run_list(limit=PAGE_LIMIT)).items

    async def has_taken(self, place: int) -> bool:
        with _failures("has_taken"):
            # The cursor is exclusive, and a page of one keeps the texts of earlier results out of the reply.
            return bool((await self._api.run_events_page(after_cursor=str(place - 1), limit=1)).items)

    async def get_state(self, key: str) -> Json:
        with _failures("state_get"):
            return cast(Json, (await self._api.state_get("conversation", key)).get("value"))

    async def set_state(self, key: str, value: Json) -> None:
        with _failures("state_set"):
            await self._api.state_set("conversation", key, value)

    async def delete_state(self, key: str) -> bool:
        with _failures("state_delete"):
            return (await self._api.state_delete("conversation", key)).get("success") is True


def _entries(found: list[dict[str, Any]]) -> list[RetrievalResultEntry]:
    """The readable entries of a retrieval. Raises ValueError when there are entries and none can be read."""
    read: list[RetrievalResultEntry] = []
    for entry in found:
        with suppress(ValidationError):
            read.append(RetrievalResultEntry.model_validate(entry))
    if found and not read:
        raise _Unreadable("no entry of the reply can be read")
    return read


def _places(ranked: list[dict[str, Any]], count: int) -> list[int]:
    """The usable places of a ranking, once each. Raises ValueError when there is none."""
    places = [one["index"] for one in ranked]
    usable = [place for place in dict.fromkeys(places) if isinstance(place, int) and 0 <= place < count]
    if not usable:
        raise _Unreadable("no place of the ranking is among the documents")
    return usable


@contextmanager
def _failures(action: str) -> Iterator[None]:
    """Turn everything the proxy raises into `HostCallFailed`; every call to the Host goes through here.

    However a call ends, a cancellation of this task outweighs what came of it (I4).
    """
    try:
        yield
    except PermissionDeniedError as error:
        raise HostCallFailed(action, HostFailure.DENIED, str(error)) from error
    except AgentAPIException as error:
        raise HostCallFailed(action, _kind_of(error), str(error)) from error
    except (ValidationError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        # A reply of another shape than the proxy promises: it validates only part of what it reads.
        raise HostCallFailed(action, HostFailure.MALFORMED, _shape_of(error)) from error
    except TimeoutError as error:
        raise HostCallFailed(action, HostFailure.TIMEOUT, str(error)[:500]) from error
    except (RuntimeError, OSError) as error:
        # "This LangBot Host does not support …", "Plugin invocation has ended", and a handler that was torn down.
        raise HostCallFailed(action, HostFailure.CONNECTION, f"{type(error).__name__}: {error}"[:500]) from error
    except asyncio.CancelledError as error:
        # The other side broke the call off: a failure like any. Our own cancellation is raised anew below.
        raise HostCallFailed(action, HostFailure.CONNECTION, "the call was broken off") from error
    finally:
        _mind_cancellation()


class _Unreadable(ValueError):
    """A reply that the proxy let pass and that says nothing; its words are ours."""


def _shape_of(error: Exception) -> str:
    """What is wrong with a reply, without a word of it: these texts go into the log."""
    if isinstance(error, _Unreadable):
        return str(error)
    if not isinstance(error, ValidationError):
        return f"the reply has another shape ({type(error).__name__})"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(step) for step in first["loc"])[:_PLACE_CHARACTERS]
    return f"the reply is no {error.title}: {first['type']} at {place or 'its top'}"


def _is_about_usage(error: ValidationError) -> bool:
    """Whether all that cannot be read of a reply is what it used (I8)."""
    return all(fault["loc"][:1] == ("usage",) for fault in error.errors(include_url=False, include_input=False))


def _mind_cancellation() -> None:
    """Raise the CancelledError that came together with the Host's answer.

    In Python 3.11 `asyncio.wait_for`, with which the SDK waits, forgets the cancellation then: it returns the answer,
    or raises the failure that came in its place.
    """
    if is_cancelled():
        raise asyncio.CancelledError


def _kind_of(error: AgentAPIException) -> HostFailure:
    code = error.error.code
    if code == "deadline_exceeded" or _HOP_TIMEOUT in error.error.message:
        return HostFailure.TIMEOUT
    if code == "runtime_error":
        return HostFailure.CONNECTION
    if code == "host.malformed_response":
        return HostFailure.MALFORMED
    return HostFailure.REFUSED
