"""The SDK's `Handler` at the Host's end: serves the plugin's calls, and fails them where a test planned it.

Runtime and Host are one here. What the runtime's hop adds is imitated: it hands on the Host's error as text alone
(langbot_plugin runtime/io/handlers/plugin.py:call_host_action, io/handler.py:_handle_action) and gives up waiting
after a time of its own while the Host works on.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

from langbot_plugin.entities.io.actions.enums import PluginToRuntimeAction
from langbot_plugin.entities.io.resp import ActionResponse
from langbot_plugin.runtime.io.connection import Connection
from langbot_plugin.runtime.io.handler import MAX_PROTOCOL_ERROR_CHARS

from .actions import ActionRefused, Actions
from .faults import Fault, bent
from .plugin import files_folder
from .records import Call, CallLog
from .script import Json
from .texts import model_error
from .wire import InlineCodec
from .world import World

# Seconds the runtime waits for the Host: runtime/io/handlers/plugin.py. Model calls and counts carry their own.
HOP_LIMITS: dict[str, float] = {
    "call_tool": 180,
    "get_tool_detail": 30,
    "retrieve_knowledge_base": 120,
    "invoke_rerank": 60,
    "history_page": 30,
    "history_search": 30,
    "event_page": 30,
    "run_list": 30,
    "run_events_page": 30,
    "reply_stream": 30,
    "acquire_box": 180,
    "bind_box": 180,
    "import_box_attachments": 180,
    "export_box_files": 180,
    "get_box_status": 180,
}
DEFAULT_HOP_LIMIT = 15.0

_call: contextvars.ContextVar[Call | None] = contextvars.ContextVar("test_host_call", default=None)


class _Struck(Exception):
    """A fault answers in place of the Host."""

    def __init__(self, response: ActionResponse) -> None:
        super().__init__(response.message)
        self.response = response


def refusal(error: BaseException) -> str:
    """The text in which an error of the Host reaches the plugin's connection."""
    text = str(error)
    if len(text) > MAX_PROTOCOL_ERROR_CHARS:
        text = text[:MAX_PROTOCOL_ERROR_CHARS] + "... [protocol error truncated]"
    if isinstance(error, ActionRefused):
        return f"ActionCallError: {text}"
    return f"ActionCallError: {type(error).__name__}: {text}"


class HostHandler(InlineCodec):
    """Serves the actions of `world` over one connection."""

    def __init__(self, connection: Connection, world: World, log: CallLog) -> None:
        super().__init__(connection, file_storage_dir=files_folder(), cancel_active_tasks_on_close=True)
        self.name = "Host"
        self.world = world
        self.log = log
        self.served = Actions(world)
        self.working: set[asyncio.Task[Json]] = set()
        for action in PluginToRuntimeAction:
            if action is PluginToRuntimeAction.INVOKE_LLM_STREAM:
                # The SDK's decorator is typed for coroutines alone, its dispatch takes generators too.
                self.actions[action.value] = cast(Any, self._stream)
            else:
                self.action(action)(self._unary(action.value))

    async def _handle_action(self, req_data: dict[str, Any], *, control_scope: str | None = None) -> None:
        _call.set(self.log.by_seq.get(req_data.get("seq_id", -1)))
        await super()._handle_action(req_data, control_scope=control_scope)

    async def _send_message(
        self, payload: Any, *, action_context: Any = None, blocking_scope: str | None = None
    ) -> None:
        fault = _fault()
        for _ in range(2 if fault is not None and fault.kind == "doubled" else 1):
            await super()._send_message(payload, action_context=action_context, blocking_scope=blocking_scope)

    def _unary(self, action: str) -> Callable[[Json], Any]:
        async def serve(data: Json) -> ActionResponse:
            try:
                await self._strike(_fault(), data)
                return _answered(await self._work(action, data))
            except _Struck as struck:
                return struck.response
            except Exception as error:  # noqa: BLE001  # the SDK's handler turns any exception into a text
                return ActionResponse.error(refusal(error))

        return serve

    async def _work(self, action: str, data: Json) -> Json:
        """The Host's work in a task of its own: the hop's time limit does not stop it."""
        limit = self.world.hop_limits.get(action, data.get("timeout", HOP_LIMITS.get(action, DEFAULT_HOP_LIMIT)))
        task = asyncio.create_task(self.served.answer(action, data))
        self.working.add(task)
        task.add_done_callback(self._worked)
        done, _ = await asyncio.wait({task}, timeout=limit)
        if not done:
            raise _Struck(ActionResponse.error(f"ActionCallTimeoutError: Action {action} call timed out"))
        return task.result()

    def _worked(self, task: asyncio.Task[Json]) -> None:
        self.working.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be waiting any more

    async def _stream(self, data: Json) -> AsyncGenerator[ActionResponse, None]:
        fault = _fault()
        try:
            if fault is not None and fault.after == 0:
                await self._strike(fault, data)
            async with aclosing(self.served.stream(data)) as events:
                async for event in self._struck_midway(events, fault, data):
                    yield _answered(event)
        except _Struck as struck:
            yield struck.response
        except Exception as error:  # noqa: BLE001  # as above
            yield ActionResponse.error(refusal(error))

    async def _struck_midway(self, events: AsyncIterator[Json], fault: Fault | None, data: Json) -> AsyncIterator[Json]:
        delivered = 0
        async for event in events:
            if fault is not None and fault.after and delivered == fault.after:
                await self._strike(fault, data)
            delivered += 1
            yield event

    async def _strike(self, fault: Fault | None, data: Json) -> None:
        """Raises `_Struck` where the fault answers itself; returns where the Host answers after all."""
        if fault is None:
            return
        answer = self._answer_of(fault)
        if answer is not None:
            raise _Struck(answer)
        match fault.kind:
            case "disconnect":
                await self.conn.close()
                await asyncio.Event().wait()
            case "hang":
                await asyncio.Event().wait()
            case "slow":
                await asyncio.sleep(fault.seconds or 0)
            case "held":
                assert fault.gate is not None
                await fault.gate.wait()
                await self._strike(fault.then, data)
            case "cancel":
                self._cancel(data)

    def _answer_of(self, fault: Fault) -> ActionResponse | None:
        """The answer of a fault that answers at once."""
        if fault.kind == "malformed":
            return ActionResponse.success(fault.reply)
        text = {
            "error": f"ActionCallError: {fault.text}",
            "model": f"ActionCallError: RequesterError: {model_error(fault.text, self.world.language)}",
            "timeout": f"ActionCallTimeoutError: Action {_action()} call timed out",
            "drop": "ConnectionClosedError: Connection closed",
        }.get(fault.kind)
        return None if text is None else ActionResponse.error(text)

    def _cancel(self, data: Json) -> None:
        record = self.world.run(data.get("run_id"))
        if record is not None:
            record.request_cancel("fault")

    async def close(self) -> None:
        for task in list(self.working):
            task.cancel()
        await super().close()


def _fault() -> Fault | None:
    call = _call.get()
    return None if call is None else call.fault


def _answered(answer: Json) -> ActionResponse:
    fault = _fault()
    return ActionResponse.success(answer if fault is None else bent(fault, answer))


def _action() -> str:
    call = _call.get()
    return "unknown" if call is None else call.action
