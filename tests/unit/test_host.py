"""D8, Q4: the port to the Host: what goes over the wire, and that every failure crosses as HostCallFailed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIError, AgentAPIException
from langbot_plugin.api.proxies.runner import PermissionDeniedError
from langbot_plugin.entities.io.errors import ActionCallError, ActionCallTimeoutError, ConnectionClosedError

from runner.host.errors import HostCallFailed, HostFailure
from runner.host.port import PAGE_LIMIT, STEERING_LIMIT, ModelCall, ProxyHost
from tests.unit.border import RUN_ID, Handler, context, host_over, text_frame

CALL = ModelCall("a", ())


async def streamed(host: ProxyHost) -> object:
    async with aclosing(host.stream(CALL)) as events:
        return [event async for event in events]


Method = Callable[[ProxyHost], Awaitable[object]]
METHODS: dict[str, tuple[str, Method]] = {
    "prompt": ("get_prompt", lambda host: host.prompt()),
    "history_page": ("history_page", lambda host: host.history_page(limit=5)),
    "count_tokens": ("count_tokens", lambda host: host.count_tokens(CALL)),
    "stream": ("invoke_llm_stream", streamed),
    "invoke": ("invoke_llm", lambda host: host.invoke(CALL)),
    "call_tool": ("call_tool", lambda host: host.call_tool("t", {})),
    "steering": ("steering_pull", lambda host: host.steering()),
    "run_get": ("run_get", lambda host: host.cancel_requested()),
    "run_list": ("run_list", lambda host: host.runs()),
    "has_taken": ("run_events_page", lambda host: host.has_taken(3)),
    "state_get": ("state_get", lambda host: host.get_state("k")),
    "state_set": ("state_set", lambda host: host.set_state("k", 1)),
    "state_delete": ("state_delete", lambda host: host.delete_state("k")),
}
FAILURES: list[tuple[BaseException, HostFailure]] = [
    (ActionCallError("ActionCallError: no"), HostFailure.REFUSED),
    (ActionCallError("ActionCallTimeoutError: Action x call timed out"), HostFailure.TIMEOUT),
    (ActionCallTimeoutError("Action x call timed out"), HostFailure.TIMEOUT),
    (ConnectionClosedError("Connection closed"), HostFailure.CONNECTION),
    (AgentAPIException(AgentAPIError(code="host.malformed_response", message="m")), HostFailure.MALFORMED),
    (PermissionDeniedError("not yours"), HostFailure.DENIED),
    (RuntimeError("Plugin invocation has ended"), HostFailure.CONNECTION),
    (ConnectionResetError("reset"), HostFailure.CONNECTION),
    (ValueError("odd"), HostFailure.MALFORMED),
    (KeyError("odd"), HostFailure.MALFORMED),
]


def failing(method: str, error: object) -> Handler:
    action = METHODS[method][0]
    return Handler(replies=[[error]], answers={action: error})


def host(handler: Handler) -> ProxyHost:
    ctx = context()
    ctx.resources.tools = [type(ctx.resources).model_validate({"tools": [{"tool_name": "t"}]}).tools[0]]
    ctx.context.available_apis.run_events_page = True
    ctx.context.available_apis.run_list = True
    return host_over(handler, ctx)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("error", "kind"), FAILURES, ids=lambda value: type(value).__name__)
async def test_Q4_every_call_fails_as_host_call_failed_with_its_kind(
    method: str, error: BaseException, kind: HostFailure
) -> None:
    with pytest.raises(HostCallFailed) as told:
        await METHODS[method][1](host(failing(method, error)))
    assert (told.value.action, told.value.kind) == (method, kind)
    assert isinstance(told.value.text, str)


@pytest.mark.parametrize("method", METHODS)
async def test_Q4_a_bare_time_out_fails_as_host_call_failed(method: str) -> None:
    with pytest.raises(HostCallFailed):
        await METHODS[method][1](host(failing(method, TimeoutError())))


@pytest.mark.parametrize(
    "method",
    [name for name in METHODS if name not in {"stream", "state_set", "state_get", "state_delete", "has_taken"}],
)
@pytest.mark.parametrize(
    "odd", [{}, [], "text", 5, {"prompt": 5, "items": 5, "tokens": "x", "message": 5, "run_id": []}], ids=str
)
async def test_Q4_a_reply_of_another_shape_is_malformed_or_an_empty_answer_of_the_right_shape(
    method: str, odd: object
) -> None:
    try:
        got = await METHODS[method][1](host(failing(method, odd)))
    except HostCallFailed as told:
        assert told.kind is HostFailure.MALFORMED
    else:
        assert method in {"history_page", "steering", "run_list", "has_taken"} and odd == {}, (
            f"{got!r} was taken for an answer"
        )


@pytest.mark.parametrize("odd", [[], "text", 5])
async def test_Q4_a_state_reply_of_another_shape_is_malformed(odd: object) -> None:
    with pytest.raises(HostCallFailed) as told:
        await host(failing("state_get", odd)).get_state("k")
    assert told.value.kind is HostFailure.MALFORMED


async def test_I1_what_is_not_granted_is_denied_without_a_call() -> None:
    handler = Handler()
    host = host_over(handler, context(models=[{"model_id": "a", "operations": ["invoke"]}], apis={}))
    asked: list[Awaitable[object]] = [
        host.prompt(),
        host.history_page(limit=1),
        host.count_tokens(CALL),
        streamed(host),
        host.invoke(ModelCall("foreign", ())),
        host.call_tool("foreign", {}),
        host.get_state("k"),
        host.set_state("k", 1),
        host.delete_state("k"),
    ]
    for each in asked:
        with pytest.raises(HostCallFailed) as told:
            await each
        assert told.value.kind is HostFailure.DENIED
    assert handler.calls == []


async def test_G3_after_the_hosts_deadline_a_call_is_a_time_out_without_a_call() -> None:
    handler = Handler()
    with pytest.raises(HostCallFailed) as told:
        await host_over(handler, context(deadline_at=time.time() - 1)).prompt()
    assert told.value.kind is HostFailure.TIMEOUT and handler.calls == []


@pytest.mark.parametrize(("asked", "sent"), [(0, 1), (-5, 1), (1, 1), (100, 100), (5000, PAGE_LIMIT)])
async def test_B5_a_page_limit_stays_where_the_host_cuts_nothing_in_silence(asked: int, sent: int) -> None:
    handler = Handler()
    await host_over(handler, context()).history_page(limit=asked)
    assert handler.requests("history_page")[0]["limit"] == sent <= 100


@pytest.mark.parametrize(
    ("cursors", "direction"), [({}, "backward"), ({"before": "9"}, "backward"), ({"after": "3"}, "forward")]
)
async def test_B5_pages_go_backward_and_forward_only_from_a_cursor(cursors: dict[str, str], direction: str) -> None:
    handler = Handler()
    await host_over(handler, context()).history_page(limit=5, **cursors)
    (sent,) = handler.requests("history_page")
    assert sent["direction"] == direction
    assert (sent["before_cursor"], sent["after_cursor"]) == (cursors.get("before"), cursors.get("after"))


async def test_G1_a_pull_asks_for_everything_in_order_and_within_the_hosts_limit() -> None:
    handler = Handler()
    await host_over(handler, context()).steering()
    assert handler.requests("steering_pull") == [{"run_id": RUN_ID, "mode": "all", "limit": STEERING_LIMIT}]
    assert 0 < STEERING_LIMIT <= 100


@pytest.mark.parametrize(("at", "asked"), [(None, False), (0, True), (5, True)])
async def test_G2_the_stop_flag_is_a_time_and_any_time_counts(at: int | None, asked: bool) -> None:
    answer = {"run_id": RUN_ID, "status": "running", "cancel_requested_at": at}
    assert await host_over(Handler(answers={"run_get": answer}), context()).cancel_requested() is asked


@pytest.mark.parametrize("result", ["text", ["a", {"type": "text"}], {"ok": True}, 5, None, False, 1.5])
async def test_D4_a_tool_may_return_any_json_value(result: object) -> None:
    handler = Handler(answers={"call_tool": {"result": result}})
    assert await host(handler).call_tool("t", {"a": 1}) == result
    assert handler.requests("call_tool")[0]["parameters"] == {"a": 1}


async def test_G2_cancelling_a_call_is_a_cancellation_and_no_host_failure() -> None:
    pending = asyncio.create_task(host(Handler(answers={"get_prompt": None})).prompt())
    await asyncio.sleep(0)
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending


async def test_C2_closing_a_stream_closes_it_at_the_host() -> None:
    handler = Handler([[text_frame("a"), None]])
    stream = host(handler).stream(CALL)
    await anext(stream)
    assert handler.streams_open == 1
    await stream.aclose()
    assert handler.streams_open == 0


@pytest.mark.parametrize("items", [5, "x", [3], [{"sequence": "soon"}]])
async def test_Q4_a_page_of_results_of_another_shape_is_malformed(items: object) -> None:
    with pytest.raises(HostCallFailed) as told:
        await host(Handler(answers={"run_events_page": {"items": items}})).has_taken(3)
    assert told.value.kind is HostFailure.MALFORMED
