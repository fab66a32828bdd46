"""C2, F3, D9, K2: units as messages a provider takes, and the ids their calls go by."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.conversation.call_ids import OWN_CHARACTERS, CallIds, for_others, made
from runner.conversation.request import Request, ToolSpec
from runner.conversation.units import AssistantTurn, Image, System, Text, ToolCall, ToolResult, Unit, UserTurn
from runner.conversation.wire import Wire, system_messages
from runner.host.events import Json

# C2, F3, D9: units as messages a provider takes.

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


# K2: which id a call goes by, for the model that wrote it and for any other.

MADE = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)
SIGNED = "call_5f1__thought__" + "CpgCAdHtim9" * 200 + "=="
OWN = ["call_0", "D681PevKs", "functions.find:0", "toolu_01A", "chatcmpl-tool-1", "call 0", "x" * 80, "調用", SIGNED]

wishes = st.none() | st.text(max_size=60) | st.sampled_from([*OWN, "functions.find:1", "functions.get:0"])


@pytest.mark.parametrize("own", OWN)
def test_K2_a_models_own_id_stays_as_it_was_whatever_its_shape(own: str) -> None:
    assert CallIds().claim(own, "m") == own


@pytest.mark.parametrize(
    "hostile",
    ["", "a\x00b", "a\nb", "\ud800", "\u202eabc", "a\u200b", "<|im_end|>", "x" * (OWN_CHARACTERS + 1), "x" * 1_000_000],
)
def test_K2_an_id_that_cannot_be_shown_or_is_endless_gives_way_to_one_of_ours(hostile: str) -> None:
    assert MADE.fullmatch(CallIds().claim(hostile, "m"))


def test_K2_ids_that_repeat_over_rounds_or_are_missing_become_ours() -> None:
    ids = CallIds()
    first, *others = [ids.claim(wished, "m") for wished in ("call_0", "call_0", None, "", "call_0")]
    assert first == "call_0"
    assert all(MADE.fullmatch(other) for other in others)
    assert len(set(others)) == 4


@given(st.lists(wishes, max_size=30), st.sets(st.sampled_from([*OWN, made("call", 1), made("call", 2)])))
def test_K2_every_id_is_new_also_under_the_name_that_other_models_read(
    claims: list[str | None], taken: set[str]
) -> None:
    ids = CallIds(taken)
    claimed = [ids.claim(wished, "m") for wished in claims]
    assert len(set(claimed)) == len(claimed) and taken.isdisjoint(claimed)
    read = [ids.sent(each, "find", "m", "other") for each in claimed]
    assert len(set(read)) == len(read) and taken.isdisjoint(read)
    assert all(MADE.fullmatch(each) for each in read)


@given(st.lists(wishes, max_size=12))
def test_K2_the_same_run_gives_the_same_ids_again(claims: list[str | None]) -> None:
    one, two = CallIds(), CallIds()
    assert [one.claim(wished, "m") for wished in claims] == [two.claim(wished, "m") for wished in claims]


def test_K2_an_id_of_nine_letters_and_digits_is_the_same_for_every_model() -> None:
    assert for_others("D681PevKs") == "D681PevKs"
    assert MADE.fullmatch(for_others("call_0")) and for_others("call_0") != for_others("call_1")


def test_K2_an_id_that_another_call_has_for_other_models_is_taken() -> None:
    ids = CallIds()
    first, second = ids.claim("call_0", "m"), ids.claim(for_others("call_0"), "m")
    assert len({ids.sent(each, "find", "m", "other") for each in (first, second)}) == 2


def test_K2_a_model_that_numbers_its_calls_reads_those_of_others_as_numbered() -> None:
    ids = CallIds(wants_numbers=lambda model: model == "kimi")
    history = [(made("record", n), name) for n, name in enumerate(["find", "get", "find"])]
    read = [ids.sent(call_id, name, None, "kimi") for call_id, name in history]
    assert read == ["functions.find:0", "functions.get:1", "functions.find:2"]
    assert [ids.sent(call_id, name, None, "other") for call_id, name in history] == [each for each, _ in history]
    assert [ids.sent(call_id, name, None, "kimi") for call_id, name in reversed(history)] == read[::-1]


def test_K2_a_numbered_id_that_is_taken_becomes_the_next_number() -> None:
    ids = CallIds(wants_numbers=lambda _model: True)
    assert ids.sent("aaaaaaaaa", "find", None, "kimi") == "functions.find:0"
    claimed = [ids.claim(wished, "kimi") for wished in ("functions.find:0", "functions.get:5", "functions.get:5")]
    assert claimed == ["functions.find:1", "functions.get:5", "functions.get:6"]


@given(st.lists(st.sampled_from(["find", "get"]), max_size=5), st.lists(wishes, max_size=12))
def test_K2_numbered_ids_of_replayed_calls_never_meet_those_of_the_run(
    history: list[str], claims: list[str | None]
) -> None:
    ids = CallIds(wants_numbers=lambda _model: True)
    replayed = [ids.sent(made("record", place), name, None, "kimi") for place, name in enumerate(history)]
    live = [ids.claim(wished, "kimi") for wished in claims]
    assert len({*replayed, *live}) == len(replayed) + len(live)
    assert [ids.sent(each, "find", "kimi", "kimi") for each in live] == live


def test_K2_whether_a_model_numbers_its_calls_is_told_each_time_it_writes_an_id() -> None:
    seen: list[tuple[str, bool]] = []
    ids = CallIds(saw=lambda model, numbered: seen.append((model, numbered)))
    for wished in ("functions.find:0", None, "call_0"):
        ids.claim(wished, "m")
    assert seen == [("m", True), ("m", False)]
