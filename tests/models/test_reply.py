"""C2-C5, F2: one model asked through the real proxy, and its stream read to the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.provider.message import (
    ContentElement,
    FunctionCall,
    LLMTokenUsage,
    Message,
    MessageChunk,
    ToolCall,
)
from langbot_plugin.api.entities.builtin.runner.errors import AgentAPIError, AgentAPIException
from langbot_plugin.entities.io.errors import ActionCallError, ActionCallTimeoutError, ConnectionClosedError

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import System, Text, UserTurn
from runner.conversation.wire import Wire
from runner.host.errors import HostCallFailed, ModelFailed, ModelTrouble
from runner.host.events import Usage
from runner.models.calls import RawCall
from runner.models.fallback_order import authorised
from runner.models.provider import HostModel
from runner.models.refusals import Refusals, Step
from runner.models.reply import Reply, ReplyReader, usage_of
from tests.unit.border import Handler, context, finish_frame, host_over, text_frame, usage_frame

# C2-C4, F2: one model asked through the real proxy.

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


# C2, C5: a stream read to its end, calls put together, counters kept.

NAMES = st.sampled_from(["f", "g", "get_time"])
JSON_OBJECTS = st.dictionaries(st.text(max_size=5), st.text(max_size=12) | st.integers() | st.none(), max_size=3)


def fragment(call_id: str, name: str, arguments: str, **fields: object) -> MessageChunk:
    function = FunctionCall(name=name, arguments=arguments)
    call = ToolCall(id=call_id, type="function", function=function, provider_specific_fields=fields or None)
    return MessageChunk(role="assistant", tool_calls=[call])


def text(words: str, **fields: object) -> MessageChunk:
    return MessageChunk(role="assistant", content=words, provider_specific_fields=fields or None)


def read(*chunks: MessageChunk | Message) -> Reply:
    reader = ReplyReader("m")
    for chunk in chunks:
        reader.feed(chunk)
    return reader.close()


def pieces(whole: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    return [whole[start:end] for start, end in pairwise(places)]


@given(st.text(), st.lists(st.integers(0, 60), max_size=8))
def test_C2_text_is_the_fragments_joined_whatever_the_chunks(whole: str, cuts: list[int]) -> None:
    reader = ReplyReader("m")
    seen = [reader.feed(text(piece)) for piece in pieces(whole, cuts)]
    assert "".join(seen) == reader.close().text == whole


def test_C2_a_reply_that_is_not_streamed_reads_like_a_stream_of_one_chunk() -> None:
    message = Message(role="assistant", content="answer", provider_specific_fields={"finish_reason": "stop"})
    assert read(message) == read(text("ans"), text("wer", finish_reason="stop"))


def test_C2_text_elements_count_as_text_and_other_elements_do_not() -> None:
    parts = [
        ContentElement.from_text("a"),
        ContentElement.from_image_url("http://x/y.png"),
        ContentElement.from_text("b"),
    ]
    assert read(MessageChunk(role="assistant", content=parts)).text == "ab"


@pytest.mark.parametrize("content", [None, "", []])
def test_C6_a_chunk_without_text_brings_none(content: str | list[ContentElement] | None) -> None:
    assert ReplyReader("m").feed(MessageChunk(role="assistant", content=content)) == ""


def test_K5_a_character_cut_over_two_chunks_is_one_and_a_lone_half_is_none() -> None:
    reader = ReplyReader("m")
    pieces = ["a\ud83d", "", "\ude00b\ud83d", "c\ud83d"]
    assert [reader.feed(text(piece)) for piece in pieces] == ["a", "", "😀b", "\ud83dc"]
    assert reader.close().text == "a😀b\ud83dc"
    halves = [text("", reasoning_content=half) for half in ("\ud83d", "\ude00\ud83d")]
    assert read(*halves).provider_fields == {"reasoning_content": "😀"}


def test_C2_text_after_the_final_flag_still_counts() -> None:
    assert read(MessageChunk(role="assistant", content="a", is_final=True), text("b")).text == "ab"


@pytest.mark.parametrize("words", ["", " \n\t", "\u3000", "\x00", "\ud83d", "\u200b\ufeff"])
def test_C1_white_space_alone_is_an_empty_reply(words: str) -> None:
    assert read(text(words)).empty


@pytest.mark.parametrize("words", ["<think>hm</think>\u200b", "\ufeff<think>hm</think>\n\x00", "<think>\u200b"])
def test_K6_a_thought_beside_which_nothing_is_seen_is_a_thought_alone(words: str) -> None:
    assert read(text(words)).empty
    assert not read(text(f"{words}</think>There.")).empty


def test_C1_a_call_alone_is_no_empty_reply() -> None:
    assert not read(fragment("c", "f", "{}")).empty


@given(
    st.lists(st.tuples(NAMES, JSON_OBJECTS), min_size=1, max_size=4),
    st.data(),
)
def test_C2_interleaved_fragments_are_merged_by_id(
    calls: list[tuple[str, dict[str, object]]], data: st.DataObject
) -> None:
    waiting = []
    for place, (name, arguments) in enumerate(calls):
        written = json.dumps(arguments)
        cuts = data.draw(st.lists(st.integers(1, max(1, len(written) - 1)), max_size=4))
        waiting.append([(f"c{place}", name, piece) for piece in pieces(written, cuts)])
    chunks = [fragment(*queue.pop(0)) for queue in waiting]  # first appearance decides the order
    while any(waiting):
        queue = data.draw(st.sampled_from([queue for queue in waiting if queue]))
        chunks.append(fragment(*queue.pop(0)))
    read_calls = read(*chunks).calls
    assert [(call.id, call.name) for call in read_calls] == [(f"c{n}", name) for n, (name, _) in enumerate(calls)]
    assert [json.loads(call.arguments) for call in read_calls] == [arguments for _, arguments in calls]


def test_C2_calls_without_any_id_are_kept_apart_by_a_new_object() -> None:
    calls = read(fragment("", "f", '{"a"'), fragment("", "f", ":1}"), fragment("", "f", '{"a":1}')).calls
    assert [call.arguments for call in calls] == ['{"a":1}', '{"a":1}']


def test_C2_a_new_name_after_complete_json_starts_a_new_call_even_under_the_same_id() -> None:
    calls = read(
        fragment("call_0", "f", '{"a":1}'), fragment("call_0", "g", ""), fragment("call_0", "g", '{"b":2}')
    ).calls
    assert [(call.name, call.arguments) for call in calls] == [("f", '{"a":1}'), ("g", '{"b":2}')]


def test_C2_two_calls_with_equal_name_and_arguments_stay_two() -> None:
    assert len(read(fragment("a", "f", "{}"), fragment("b", "f", "{}")).calls) == 2


def test_C2_a_fragment_without_id_and_name_goes_on_with_the_last_call() -> None:
    calls = read(fragment("c1", "f", '{"a"'), fragment("", "", ":1}")).calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [("c1", "f", '{"a":1}')]


def test_C2_two_calls_without_ids_and_arguments_stay_two() -> None:
    assert [call.name for call in read(fragment("", "f", ""), fragment("", "g", "")).calls] == ["f", "g"]


def test_C2_two_calls_without_ids_the_first_without_arguments_stay_two() -> None:
    calls = read(fragment("", "f", ""), fragment("", "g", '{"x":1}')).calls
    assert [(call.name, call.arguments) for call in calls] == [("f", ""), ("g", '{"x":1}')]


def test_C2_one_id_two_names_without_arguments_stay_two() -> None:
    assert [call.name for call in read(fragment("call_0", "f", ""), fragment("call_0", "g", "")).calls] == ["f", "g"]


@pytest.mark.parametrize("broken", ['{"a":', "[1,2]", "nonsense", '{"a":1}[2]', '{"a":1}}', "", "[" * 100_000])
def test_D3_arguments_that_are_no_object_are_handed_on_as_they_came(broken: str) -> None:
    assert [call.arguments for call in read(fragment("c", "f", broken)).calls] == [broken]


def test_C2_provider_fields_of_a_call_and_of_a_reply_survive() -> None:
    reply = read(
        text("", reasoning_content="I th"),
        text("", reasoning_content="ink", thinking_blocks=[{"t": 1}]),
        text("", thinking_blocks=[{"t": 1}, {"t": 2}]),
        fragment("c", "f", "{", thought_signature="s"),
        fragment("c", "f", "}"),
    )
    assert reply.provider_fields == {"reasoning_content": "I think", "thinking_blocks": [{"t": 1}, {"t": 2}]}
    assert reply.calls == (RawCall("c", "f", "{}", {"thought_signature": "s"}),)


@pytest.mark.parametrize(
    ("reason", "cut"), [("length", True), ("max_tokens", True), ("stop", False), ("tool_calls", False)]
)
def test_C2_a_reply_cut_by_its_length_says_so(reason: str, cut: bool) -> None:
    reply = read(text("half", finish_reason=reason))
    assert reply.cut is cut
    assert reply.provider_fields is None, "the finish reason is not sent back"


def test_C2_a_chunk_after_the_cut_does_not_undo_it() -> None:
    assert read(text("half", finish_reason="length"), text("</think>", finish_reason="length"), text("x")).cut
    assert read(text("half", finish_reason="length"), text("x", finish_reason=None)).cut


def test_C5_the_last_report_of_a_call_counts() -> None:
    reader = ReplyReader("m")
    reader.take_usage(LLMTokenUsage(prompt_tokens=1, completion_tokens=1))
    reader.take_usage(LLMTokenUsage(prompt_tokens=5, completion_tokens=7, total_tokens=12))
    assert reader.close().usage == Usage(5, 7, 12, {})


def test_C5_without_a_report_usage_is_unknown_not_zero() -> None:
    assert read(text("a")).usage is None


def test_C5_missing_counters_are_zero_and_nested_extras_keep_their_place() -> None:
    report = LLMTokenUsage.model_validate(
        {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2, "x": None, "y": True}, "cost": 0.5}
    )
    assert usage_of(report) == Usage(3, 0, 3, {"prompt_tokens_details.cached_tokens": 2})


@pytest.mark.parametrize(
    "counters",
    [
        {"prompt_tokens": -5, "completion_tokens": 10**400},
        {"prompt_tokens": None, "total_tokens": None},
        {"prompt_tokens": "12", "completion_tokens": 3.0},
        {"details": {"deep": {"a": {"b": {"c": {"d": {"e": 1}}}}}}},
        {"x": float("nan"), "y": float("inf"), "z": "many", "l": [1, {"a": 2}], "n": -1, "big": 10**16, "b": True},
        {"a\x00": 1, "k" * 10_000: 2, **{f"counter{number}": number for number in range(5_000)}},
    ],
)
def test_I8_odd_counters_are_made_plain(counters: dict[str, Any]) -> None:
    usage = usage_of(LLMTokenUsage.model_validate(counters))
    numbers = [usage.prompt, usage.completion, usage.total, *usage.extras.values()]
    assert all(type(number) is int and 0 <= number <= 10**15 for number in numbers)
    assert len(json.dumps(dict(usage.extras), ensure_ascii=False).encode()) < 20_000
    if "prompt_tokens" in counters and counters["prompt_tokens"] == "12":
        assert usage == Usage(12, 3, 15, {})


USAGES = st.builds(
    Usage,
    st.integers(0, 99),
    st.integers(0, 99),
    st.integers(0, 99),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
)


@given(USAGES, USAGES, USAGES)
def test_C5_usage_adds_up_in_any_grouping(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (two + three)
