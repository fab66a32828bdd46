"""C2-C4, F2: one model asked through the real proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIError, AgentAPIException
from langbot_plugin.entities.io.errors import ActionCallError, ActionCallTimeoutError, ConnectionClosedError

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import System, Text, UserTurn
from runner.conversation.wire import Wire
from runner.host.errors import HostCallFailed, ModelFailed, ModelTrouble
from runner.host.events import Usage
from runner.models.fallback_order import authorised
from runner.models.provider import HostModel
from runner.models.refusals import Refusals, Step
from runner.models.reply import Reply, ReplyReader
from tests.unit.border import Handler, context, finish_frame, host_over, text_frame, usage_frame

REQUEST = Request(
    System((Text("be kind"),)), (UserTurn((Text("hi"),)),), (ToolSpec("f", "does f", {"type": "object"}),), {"k": 1}
)
REFUSED = ActionCallError('ActionCallError: ValueError: Reasoning level "max" is not supported by model m')


def model(
    handler: Handler,
    *,
    operations: tuple[str, ...] = (),
    level: str | None = None,
    refused: bool = False,
    remove_think: bool = False,
) -> HostModel:
    ctx = context(models=[{"model_id": "a", "operations": list(operations)}])
    (ref,) = authorised(["a"], {"a": level} if level else {}, ctx.resources.models)
    refusals = Refusals()
    if refused:
        refusals.next("a", ModelTrouble.REASONING_REFUSED, {Step.LEVEL})
    return HostModel(host_over(handler, ctx), ref, Wire(), refusals, remove_think=remove_think)


async def answer(asked: HostModel) -> tuple[list[str], Reply]:
    reader = ReplyReader(asked.id)
    async with aclosing(asked.answer(REQUEST, reader)) as fragments:
        seen = [text async for text in fragments]
    return seen, reader.close()


async def test_C2_the_stream_is_read_to_its_end_and_usage_comes_last() -> None:
    final = text_frame("b", is_final=True)
    handler = Handler([[text_frame("a"), final, text_frame("c"), finish_frame("stop"), usage_frame(3, 4)]])
    seen, reply = await answer(model(handler))
    assert seen == ["a", "b", "c"]
    assert (reply.text, reply.usage, reply.cut) == ("abc", Usage(3, 4, 7), False)
    assert handler.streams_open == 0


async def test_C2_where_streaming_is_not_granted_the_model_is_invoked() -> None:
    message = Message(role="assistant", content="whole", provider_specific_fields={"finish_reason": "length"})
    handler = Handler(answers={"invoke_llm": {"message": message.model_dump(), "usage": {"prompt_tokens": 1}}})
    seen, reply = await answer(model(handler, operations=("invoke",)))
    assert seen == ["whole"] and reply.cut and reply.usage == Usage(1, 0, 1)
    assert handler.requests("invoke_llm_stream") == []


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("operations", [("stream",), ("invoke",)])
async def test_C4_remove_think_is_true_or_left_out(remove: bool, operations: tuple[str, ...]) -> None:
    message = Message(role="assistant", content="x")
    handler = Handler(answers={"invoke_llm": {"message": message.model_dump()}})
    await answer(model(handler, operations=operations, remove_think=remove))
    ((_, sent),) = handler.calls
    assert sent.get("remove_think", "left out") == (True if remove else "left out")


Asking = Callable[[HostModel], Any]
WAYS: Mapping[str, tuple[str, Asking]] = {
    "stream": ("invoke_llm_stream", answer),
    "count": ("count_tokens", lambda asked: asked.count(REQUEST)),
}


@pytest.mark.parametrize("way", WAYS)
async def test_C3_the_level_goes_with_every_kind_of_call(way: str) -> None:
    handler, (action, ask) = Handler(), WAYS[way]
    await ask(model(handler, level="high"))
    assert [sent["reasoning_level"] for sent in handler.requests(action)] == ["high"]


@pytest.mark.parametrize("way", WAYS)
async def test_C3_without_a_level_none_is_sent_and_the_version_is_not_asked(way: str) -> None:
    handler, (action, ask) = Handler(), WAYS[way]
    await ask(model(handler))
    assert [name for name, _ in handler.calls] == [action]
    assert "reasoning_level" not in handler.calls[0][1]


@pytest.mark.parametrize("way", WAYS)
async def test_C3_a_level_that_was_refused_goes_with_no_call_any_more(way: str) -> None:
    handler, (action, ask) = Handler(), WAYS[way]
    asked = model(handler, level="max", refused=True)
    await ask(asked)
    assert not asked.has_level
    assert "reasoning_level" not in handler.requests(action)[0]


async def test_C3_a_refused_level_is_a_failed_model_that_says_so() -> None:
    handler = Handler([[REFUSED]])
    with pytest.raises(ModelFailed) as told:
        await answer(model(handler, level="max"))
    assert told.value.cause is ModelTrouble.REASONING_REFUSED
    assert len(handler.requests("invoke_llm_stream")) == 1


async def test_C1_a_failure_after_visible_text_is_not_tried_again_by_itself() -> None:
    handler = Handler([[text_frame("half"), REFUSED]])
    with pytest.raises(ModelFailed):
        await answer(model(handler, level="max"))
    assert len(handler.requests("invoke_llm_stream")) == 1


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ActionCallError("ActionCallError: RequesterError: Model request failed: Invalid API key"), ModelTrouble.AUTH),
        (ActionCallError("ActionCallTimeoutError: Action x call timed out"), ModelTrouble.TIMEOUT),
        (ActionCallTimeoutError("Action x call timed out"), ModelTrouble.TIMEOUT),
        (ConnectionClosedError("Connection closed"), ModelTrouble.NETWORK),
        (RuntimeError("Plugin invocation has ended"), ModelTrouble.NETWORK),
        (AgentAPIException(AgentAPIError(code="x", message="y")), ModelTrouble.OTHER),
    ],
)
async def test_Q4_whatever_breaks_a_stream_is_a_failed_model_with_a_cause(
    error: Exception, cause: ModelTrouble
) -> None:
    handler = Handler([[text_frame("a"), error]])
    with pytest.raises(ModelFailed) as told:
        await answer(model(handler))
    assert told.value.cause is cause and told.value.model_id == "a"
    assert handler.streams_open == 0


@pytest.mark.parametrize(
    "frame", [{}, {"chunk": {}}, {"chunk": {"role": 5}}, {"usage": 5}, {"chunk": "text"}, [], "x", 5]
)
async def test_Q4_a_frame_that_cannot_be_read_is_a_failed_model(frame: object) -> None:
    with pytest.raises(ModelFailed):
        await answer(model(Handler([[frame]])))


@pytest.mark.parametrize("tokens", [-1, True, "5", None, 1.5])
async def test_F2_a_count_that_is_no_number_is_a_failure_never_a_guess(tokens: object) -> None:
    with pytest.raises(HostCallFailed):
        await model(Handler(answers={"count_tokens": {"tokens": tokens}})).count(REQUEST)


async def test_F2_a_whole_request_is_counted_with_its_tools_and_extras() -> None:
    handler = Handler()
    assert await model(handler).count(REQUEST) == 10
    (sent,) = handler.requests("count_tokens")
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert [tool["name"] for tool in sent["funcs"]] == ["f"] and sent["extra_args"] == {"k": 1}


async def test_C2_closing_the_answer_closes_the_stream_at_the_host() -> None:
    handler = Handler([[text_frame("a"), text_frame("b"), None]])
    asked = model(handler)
    async with aclosing(asked.answer(REQUEST, ReplyReader("a"))) as fragments:
        assert await anext(fragments) == "a"
        assert handler.streams_open == 1
    assert handler.streams_open == 0


async def test_C2_an_empty_stream_is_an_empty_reply() -> None:
    seen, reply = await answer(model(Handler([[]])))
    assert seen == [] and reply.empty and reply.usage is None
