"""C2, F3, D9: units as messages a provider takes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, System, Text, ToolCall, ToolResult, Unit, UserTurn
from runner.conversation.wire import Wire, system_messages
from runner.host.events import Json

USER = st.lists(
    st.builds(Text, st.text(min_size=1, max_size=9))
    | st.just(Image(base64="aGk="))
    | st.just(Image(url="http://x/y.png")),
    min_size=1,
    max_size=3,
).map(lambda parts: UserTurn(tuple(parts)))


def turn_with_calls(
    text: str, count: int, author: str | None = "m", fields: Mapping[str, Json] | None = None
) -> AssistantTurn:
    calls = tuple(ToolCall(f"c{place}", "f", "{}", {"sig": place}) for place in range(count))
    results = tuple(ToolResult(call.id, call.name, f"r {call.id}") for call in calls)
    return AssistantTurn(text, calls, results, author, fields)


ASSISTANT = st.builds(
    turn_with_calls, st.text(min_size=1, max_size=9), st.integers(0, 3), st.sampled_from(["m", "n", None])
)


@given(st.lists(USER | ASSISTANT, max_size=8))
def test_D9_every_call_is_answered_right_after_the_reply_and_no_result_is_orphaned(units: list[Unit]) -> None:
    messages = Wire().unit_messages(units, "m")
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call.id for call in message.tool_calls or ()]
        assert message.content or message.tool_calls
    assert waiting == []


def test_D9_a_call_without_its_result_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="exactly one result"):
        AssistantTurn("", (ToolCall("a", "f", "{}"),))


def test_C2_provider_fields_go_only_to_the_model_that_wrote_them() -> None:
    turn = turn_with_calls("t", 1, "m", {"reasoning_content": "x"})
    wire = Wire()
    (own, _), (other, _) = wire.unit_messages([turn], "m"), wire.unit_messages([turn], "n")
    assert own.provider_specific_fields == {"reasoning_content": "x"}
    assert own.tool_calls and own.tool_calls[0].provider_specific_fields == {"sig": 0}
    assert other.provider_specific_fields is None
    assert other.tool_calls and other.tool_calls[0].provider_specific_fields is None


@pytest.mark.parametrize(
    ("thinker", "fields", "expected"),
    [
        ("m", {"reasoning_content": "x"}, {"reasoning_content": "x"}),
        ("m", None, {"reasoning_content": " "}),
        ("n", {"reasoning_content": "x"}, {"reasoning_content": " "}),
        ("nobody", None, None),
    ],
)
def test_C2_a_model_that_thinks_reads_a_thought_beside_every_call(
    thinker: str, fields: Mapping[str, Json] | None, expected: Mapping[str, Json] | None
) -> None:
    wire = Wire(thinks=lambda model_id: model_id == thinker)
    reply, _ = wire.unit_messages([turn_with_calls("t", 1, "m", fields)], "m" if thinker == "nobody" else thinker)
    assert reply.provider_specific_fields == expected
    (words,) = wire.unit_messages([AssistantTurn("t", author="m")], thinker)
    assert words.provider_specific_fields is None


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_C6_a_reply_of_calls_alone_has_no_content_rather_than_an_empty_one(text: str) -> None:
    reply, _ = Wire().unit_messages([turn_with_calls(text, 1)], "m")
    assert reply.content is None


def test_B4_text_alone_goes_as_a_string_and_pictures_as_elements() -> None:
    plain, mixed = Wire().unit_messages(
        [UserTurn((Text("a"), Text("b"))), UserTurn((Text("a"), Image(base64="aGk=")))], "m"
    )
    assert plain.content == "a\n\nb"
    assert isinstance(mixed.content, list) and [element.type for element in mixed.content] == ["text", "image_base64"]


def test_F3_the_summary_is_the_last_block_of_the_one_system_message() -> None:
    (message,) = system_messages(System((Text("owner"),), ("date",), "<conversation_summary>s</conversation_summary>"))
    assert message.content == "owner\n\ndate\n\n<conversation_summary>s</conversation_summary>"


def test_B2_nothing_to_say_is_no_system_message() -> None:
    assert system_messages(System()) == []


def test_Q2_a_unit_is_converted_once_for_all_requests_of_a_run() -> None:
    wire, turn = Wire(), turn_with_calls("t", 2)
    first, second = wire.unit_messages([turn], "m"), wire.unit_messages([turn, turn], "m")
    assert all(one is other for one, other in zip(first * 2, second, strict=True))


def test_D1_a_tool_without_arguments_is_offered_with_its_name_and_an_object_schema() -> None:
    spec = ToolSpec("f", "does f", {"type": "object", "properties": {}})
    wire = Wire()
    request = Request(System(), (), (spec,))
    (tool,) = wire.tools(request.tools)
    assert tool.model_dump() == {
        "name": "f",
        "human_desc": "does f",
        "description": "does f",
        "parameters": dict(spec.parameters),
    }
    assert wire.tools([spec])[0] is tool
