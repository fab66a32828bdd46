"""S2, S3: how many tools a prompt shows, and which turns go when it does not fit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local import Error, Finish, Message
from local.fitting import without_oldest
from runner.conversation.units import AssistantTurn, Text, Unit, UserTurn

from .scripted import Scripted, asking, many, parts_of, shown_tools, text_of, types_of

UNITS = st.lists(st.sampled_from("UA"), max_size=14).map(
    lambda kinds: tuple(
        UserTurn((Text(str(place)),)) if kind == "U" else AssistantTurn(str(place))
        for place, kind in enumerate(["U", *kinds])
    )
)


@given(UNITS)
def test_S3_the_oldest_turns_go_until_only_the_newest_request_and_what_came_last_are_left(
    units: tuple[Unit, ...],
) -> None:
    newest = [unit for unit in units if isinstance(unit, UserTurn)][-1]
    rounds = 0
    last = units
    while (fewer := without_oldest(last)) is not None:
        assert len(fewer) < len(last)
        assert isinstance(fewer[0], UserTurn)
        assert any(unit is newest for unit in fewer)
        assert fewer[-1] is units[-1]
        last, rounds = fewer, rounds + 1
    assert rounds <= len(units)
    assert last[0] is newest
    assert len(last) <= 2


async def test_S2_at_most_max_tools_are_shown_ranked_by_the_request() -> None:
    provider = Scripted("Fine.")
    await parts_of(provider, asking("please use tool 11", tools=many()), max_tools=3)
    assert len(shown_tools(provider.requests[0])) == 3
    assert "tool_11" in shown_tools(provider.requests[0])


async def test_S3_with_fits_fewer_tools_are_tried_first_max_then_4_2_and_1() -> None:
    sizes: list[int] = []

    class Narrow(Scripted):
        async def fits(self, system: str, messages: Any, tools: Any) -> bool:
            sizes.append(len([tool for tool in tools if tool.name.startswith("tool_")]))
            return sizes[-1] == 1

    provider = Narrow("Fine.")
    before = [Message("user", "hello"), Message("assistant", "Hello.")]
    await parts_of(provider, asking(tools=many(), before=before))
    assert sizes == [8, 4, 2, 1]
    assert len(provider.requests[0].messages) == 3


async def test_S3_then_the_oldest_turns_go_and_the_newest_user_turn_stays() -> None:
    before = [Message("user" if place % 2 == 0 else "assistant", f"message {place}. " * 40) for place in range(8)]
    provider = Scripted("Fine.", most=2_600)
    parts = await parts_of(provider, asking("the newest", before=before))
    turns = provider.requests[0].messages
    assert 1 <= len(turns) < 9
    assert turns[0].role == "user"
    assert turns[-1].content.endswith("the newest")
    assert parts[-1] == Finish("stop")


async def test_S3_what_still_does_not_fit_is_a_clear_error() -> None:
    provider = Scripted("Fine.", most=10)
    parts = await parts_of(provider, asking())
    assert types_of(parts) == ["message-start", "error"]
    assert isinstance(parts[-1], Error)
    assert "too long for the model" in parts[-1].text
    assert provider.requests == []


async def test_S3_a_prompt_that_the_provider_refuses_as_too_long_is_made_as_small_as_can_be_once() -> None:
    refusal = RuntimeError("request (9000 tokens) exceeds the available context size (8192 tokens)")
    before = [Message("user" if place % 2 == 0 else "assistant", f"message {place}") for place in range(6)]
    provider = Scripted(refusal, "Fine.")
    parts = await parts_of(provider, asking("the newest", tools=many(), before=before))
    assert text_of(parts) == "Fine."
    assert [turn.content.endswith("the newest") for turn in provider.requests[1].messages] == [True]
    assert len(shown_tools(provider.requests[1])) == 1


async def test_S3_a_provider_that_refuses_even_that_as_too_long_is_the_same_clear_error() -> None:
    provider = Scripted(RuntimeError("the prompt exceeds the available context size"))
    parts = await parts_of(provider, asking())
    assert isinstance(parts[-1], Error)
    assert "too long for the model" in parts[-1].text
    assert len(provider.requests) == 2
