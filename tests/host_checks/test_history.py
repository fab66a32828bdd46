"""The transcript as the plugin pages it."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.entities.builtin.provider.message import Message
from langbot_plugin.api.entities.builtin.runner.context import RunnerContext
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult
from langbot_plugin.api.proxies.runner import RunnerAPIProxy

from tests.host import Attachment, TestHost

from .probes import Probe, completed, error_of

PNG = "aVZCT1J3MEtHZ28="


async def pages(host: TestHost, *requests: dict[str, Any]) -> list[Any]:
    """One page for each request, read in one run."""

    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> list[Any]:
        return [await api.history_page(**request) for request in requests]

    probe = Probe(read)
    await host.use(probe)
    await host.say("now")
    return list(probe.seen[0])


def texts(page: Any) -> list[str]:
    return [item.content for item in page.items]


async def test_the_current_message_is_in_the_history_and_cursors_exclude_their_row() -> None:
    host = TestHost()
    host.remember(("user", "a"), ("assistant", "b"), ("user", "c"))
    newest, older, forward = await pages(
        host,
        {"limit": 2},
        {"before_cursor": "3"},
        {"after_cursor": "1", "direction": "forward", "limit": 2},
    )
    assert texts(newest) == ["now", "c"]
    assert (newest.next_cursor, newest.prev_cursor, newest.has_more) == ("3", "4", True)
    assert texts(older) == ["b", "a"]
    assert older.next_cursor is None
    assert texts(forward) == ["b", "c"]
    assert forward.next_cursor == "3"


async def test_forward_without_a_cursor_is_newest_first_and_a_page_has_at_most_100_rows() -> None:
    host = TestHost()
    host.remember(*[("user", str(index)) for index in range(120)])
    forward, big = await pages(host, {"direction": "forward", "limit": 2}, {"limit": 500})
    assert texts(forward) == ["now", "119"]
    assert len(big.items) == 100
    assert big.has_more


async def test_a_cursor_that_is_no_number_is_an_error() -> None:
    async def read(api: RunnerAPIProxy, _ctx: RunnerContext) -> Any:
        return await error_of(api.history_page(before_cursor="abc"))

    probe = Probe(read)
    await TestHost(probe).say("now")
    assert probe.seen[0].code == "host.action_error"
    assert probe.seen[0].message.startswith("ActionCallError: ValueError: invalid literal")


async def test_cursors_are_global_over_conversations() -> None:
    host = TestHost()
    host.remember(("user", "elsewhere"), conversation="person_2")
    await host.say("one")
    host.world.transcript.skip(10)
    await host.say("two")
    assert [row.seq for row in host.transcript()] == [2, 3, 14, 15]


async def test_content_is_cut_at_4000_characters_and_content_json_is_whole() -> None:
    host = TestHost()
    long = "x" * 5000
    host.remember(("user", long))
    (page,) = await pages(host, {})
    item = page.items[1]
    assert len(item.content) == 4000
    assert item.content.endswith("...")
    assert item.content_json["content"][0]["text"] == long


async def test_images_come_back_hollow() -> None:
    host = TestHost()
    await host.say("look", images=[PNG], attachments=[Attachment("a.pdf", "UERG")])
    (page,) = await pages(host, {"include_attachments": True})
    _, image, file = page.items[2].content_json["content"]
    assert (image["type"], image["image_base64"], image["content_redacted"]) == ("image_base64", None, True)
    assert (file["type"], file["file_base64"], file["file_name"]) == ("file_base64", None, "a.pdf")
    assert [one["type"] for one in page.items[2].attachment_refs] == ["image", "file"]


async def test_only_the_first_completed_message_of_a_run_is_kept() -> None:
    async def say_twice(_api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        yield completed(ctx, "first")
        yield completed(ctx, "second")
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content="third"))

    host = TestHost(Probe(say_twice))
    run = await host.say("hi")
    assert [row.text for row in host.transcript()] == ["hi", "first"]
    assert [card.text for card in run.cards] == ["first", "second", "third"]


async def test_a_reset_hides_rows_and_deletes_conversation_state_only() -> None:
    host = TestHost()
    await host.say("old")
    host.state.set("conversation", "person_1", "k", 1)
    host.state.set("actor", "u1", "k", 2)
    host.reset()
    run = await host.say("new")
    assert [row.text for row in host.transcript()] == ["new", "Echo: new"]
    assert (run.ctx["state"]["conversation"].get("k"), run.ctx["state"]["actor"]) == (None, {"k": 2})
    assert run.ctx["context"]["latest_cursor"] == "2"


async def test_assistant_rows_keep_the_whole_message_with_private_fields() -> None:
    async def say(_api: RunnerAPIProxy, ctx: RunnerContext) -> Any:
        message = Message(role="assistant", content="hi", provider_specific_fields={"_localagent": {"a": 1}})
        yield RunnerResult.message_completed(ctx.run_id, message)
        yield RunnerResult.run_completed(ctx.run_id)

    host = TestHost(Probe(say))
    await host.say("hi")
    (page,) = await pages(host, {})
    assert page.items[1].content_json["provider_specific_fields"] == {"_localagent": {"a": 1}}
