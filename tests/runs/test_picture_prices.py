"""L7: pictures cost what the Host counts for them, and nothing is refused before the Host has counted the question."""

from __future__ import annotations

from random import Random

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import Fault, Model, Reply, TestHost, Tool, ToolCall, mcp_content, tokens

from .long_chats import budget_of, chatter, model_that, prose, window
from .scenes import NUMBERED, assert_sound, host_with


def scene(size: int, rows: int, **given: object) -> TestHost:
    models = given.pop("models", None) or [Model("m1", default=model_that())]
    host = host_with(models=models, config=window(size, date_grounding=False), **given)
    chatter(host, Random(1), rows, 160)
    return host


def pictures(count: int) -> list[str]:
    return [f"aGk{number:03d}A=" for number in range(count)]


def shown(host: TestHost) -> int:
    """Pictures in the last request."""
    (*_, request) = host.runs[-1].requests
    parts = (
        part for message in request.messages if isinstance(message.get("content"), list) for part in message["content"]
    )
    return sum(part["type"] == "image_url" for part in parts)


@pytest.mark.parametrize(
    ("price", "count", "rows"), [(255, 3, 30), (255, 11, 30), (85, 25, 30), (2_500, 1, 30), (900, 3, 0), (20, 60, 4)]
)
async def test_L7_a_message_whose_pictures_fit_by_the_hosts_count_is_answered(
    monkeypatch: pytest.MonkeyPatch, price: int, count: int, rows: int
) -> None:
    monkeypatch.setattr(tokens, "PER_IMAGE", price)
    host = scene(4_096, rows)
    run = await host.say("What is on these?", images=pictures(count))
    assert (run.final_text, shown(host)) == ("Noted.", count)
    assert run.requests[-1].tokens <= budget_of(4_096)
    await assert_sound(host, run)


async def test_L7_pictures_of_tools_keep_their_results_beside_them_when_they_are_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "PER_IMAGE", 60)
    content = mcp_content("a page", *({"type": "image_base64", "image_base64": one} for one in pictures(8)))
    replies: list[Reply | str] = [Reply(tool_calls=[ToolCall("look", {"n": 1})]), "Seen."]
    models = [Model("m1", default=model_that(lambda _: replies.pop(0)))]
    look = Tool("look", result=content, type="mcp", parameters=NUMBERED)
    host = scene(4_096, 30, models=models, tools=[look])
    run = await host.say("What is on this page?")
    assert (run.final_text, shown(host)) == ("Seen.", 8)
    await assert_sound(host, run)


@pytest.mark.parametrize("locale", list(Locale))
async def test_L7_where_pictures_are_too_much_the_message_says_so(locale: Locale) -> None:
    host = scene(2_000, 4)
    host.config["notice-language"] = locale.value
    run = await host.say("What is on these?", images=pictures(12))
    assert (run.finish_reason, run.final_text) == ("error", say(Notice.PICTURES_TOO_LARGE, locale))
    assert [line for line in run.logs if "the pictures alone" in line]
    await assert_sound(host, run)


async def test_L7_beside_few_pictures_a_list_of_tools_that_is_too_large_is_named() -> None:
    tools = [Tool(f"tool_{n}", description=prose(Random(n), 120)) for n in range(40)]
    host = scene(4_096, 4, tools=tools)
    run = await host.say("What is on this?", images=pictures(1))
    assert run.final_text == say(Notice.TOOLS_TOO_LARGE, Locale.EN_US)


async def test_L7_a_count_of_pictures_that_fails_costs_no_answer() -> None:
    host = scene(8_000, 40)
    host.when("count_tokens", lambda: host.fail("count_tokens", Fault.error()))
    run = await host.say("What is on these?", images=pictures(2))
    assert run.final_text == "Noted."
    await assert_sound(host, run)


async def test_Q1_a_chat_without_pictures_is_counted_as_often_as_before() -> None:
    host = scene(4_096, 30)
    run = await host.say("And now?")
    # As it was read, without what may wait, and as it is sent.
    assert run.calls.count("count_tokens") <= 3
