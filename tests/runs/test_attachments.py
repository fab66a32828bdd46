"""B4, B5, C1, L7: pictures, voices, files and quotes in whole runs, and what pictures cost."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from config.locales import Locale
from config.notices import Notice, say
from tests.host import (
    Attachment,
    Fault,
    Model,
    ModelRequest,
    Reason,
    Reply,
    RunRecord,
    TestHost,
    Tool,
    ToolCall,
    mcp_content,
    tokens,
)
from tests.host.chat import Incoming
from tests.host.plugin import RUNNER_ID

from .long_chats import budget_of, chatter, model_that, prose, window
from .scenes import NUMBERED, assert_sound, host_with

# B4, B5, C1: pictures, voices, files and quotes as they come in a private chat, in a group and while a run goes on.

PICTURE = "data:image/png;base64,aGVsbG8="
VOICE = Attachment("voice.silk", "aGVsbG8=")
FILE = Attachment("plan.pdf", "aGVsbG8=")
BLIND = frozenset({"func_call"})
CHATS = ["person_1", "group_9"]
PLACEHOLDER = "this model cannot see pictures"
NOTE = "[The model does not take images, so they were left out.]"


def pictures(request: ModelRequest) -> list[str]:
    """The picture addresses of a request, in order."""
    parts = [
        part for message in request.messages if isinstance(message.get("content"), list) for part in message["content"]
    ]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def refusing_pictures(text: str) -> Any:
    """A model that answers `text` unless the request holds a picture."""

    def reply(request: ModelRequest) -> Reply:
        return Reply(error=Reason.BAD_REQUEST) if pictures(request) else Reply(text)

    return reply


async def said_through(how: str, text: str | None, replies: list[Any] | None = None, **files: Any) -> RunRecord:
    """A message with files as the first of a private chat, of a group, or as a follow-up while a tool runs."""
    if how != "steering":
        host = host_with(models=[Model("m1", default=(replies or ["Seen."])[-1])])
        run = await host.say(text, conversation=how, sender_name="Ann", **files)
    else:
        look = Reply(tool_calls=[ToolCall("look")])
        host = host_with(models=[Model("m1", [look], default=(replies or ["Seen."])[-1])], tools=[Tool("look")])
        incoming = Incoming(text=text, sender_name="Ann", **files)
        host.when("call_tool", lambda: host.world.claim(incoming, RUNNER_ID))
        run = await host.say("look around")
    await assert_sound(host, run)
    return run


@pytest.mark.parametrize("how", [*CHATS, "steering"])
async def test_B4_a_picture_reaches_a_model_that_can_see(how: str) -> None:
    run = await said_through(how, "What is this?", images=[PICTURE])
    assert run.answer == "Seen."
    assert pictures(run.requests[-1]) == [PICTURE]
    assert "What is this?" in run.requests[-1].last_user
    assert ("[Ann] What is this?" in run.requests[-1].last_user) is (how == "group_9")


@pytest.mark.parametrize("how", [*CHATS, "steering"])
async def test_B4_a_picture_without_a_word_is_a_message(how: str) -> None:
    run = await said_through(how, None, images=[PICTURE])
    assert (run.answer, pictures(run.requests[-1])) == ("Seen.", [PICTURE])


@pytest.mark.parametrize("how", [*CHATS, "steering"])
@pytest.mark.parametrize(
    ("file", "words"), [(VOICE, "[voice: voice.silk, 5 bytes]"), (FILE, "[file: plan.pdf, 5 bytes]")]
)
@pytest.mark.parametrize("text", ["Read this", None])
async def test_B4_files_and_voices_are_named_in_words(how: str, file: Attachment, words: str, text: str | None) -> None:
    run = await said_through(how, text, attachments=[file])
    said = run.requests[-1].last_user
    assert run.answer == "Seen."
    assert said.count(words) == 1 and said.count(file.name) == 1
    assert text is None or text in said


@pytest.mark.parametrize("how", [*CHATS, "steering"])
async def test_B4_a_model_that_refuses_pictures_is_asked_without_and_the_person_is_told(how: str) -> None:
    run = await said_through(how, "What is this?", [refusing_pictures("I cannot see it.")], images=[PICTURE])
    assert run.answer == f"I cannot see it.\n\n{NOTE}"
    assert PLACEHOLDER in run.requests[-1].last_user
    assert pictures(run.requests[-1]) == []


async def test_B4_after_a_refusal_pictures_of_follow_ups_are_left_out_at_once() -> None:
    def reply(request: ModelRequest) -> Reply:
        if pictures(request):
            return Reply(error=Reason.BAD_REQUEST)
        return Reply("Done.") if "another" in request.text else Reply(tool_calls=[ToolCall("look")])

    host = host_with(models=[Model("m1", default=reply)], tools=[Tool("look")])
    host.when("call_tool", lambda: host.steer("another", images=[PICTURE]))
    run = await host.say("What is this?", images=[PICTURE])
    assert run.answer is not None and run.answer.startswith("Done.")
    assert [len(pictures(request)) for request in run.requests] == [1, 0, 0]
    await assert_sound(host, run)


async def test_B4_a_primary_model_without_vision_reads_the_hosts_word_for_the_picture() -> None:
    host = host_with(models=[Model("m1", ["No picture here."], abilities=BLIND)])
    run = await host.say("What is this?", images=[PICTURE])
    assert run.answer == "No picture here."
    assert pictures(run.requests[0]) == []
    assert "[Image]" in run.requests[0].last_user


async def test_C1_a_fallback_without_vision_answers_without_the_picture() -> None:
    models = [Model("m1", [Reply(error=Reason.CONNECTION)]), Model("m2", default=refusing_pictures("Described."))]
    host = host_with(models=models)
    run = await host.say("What is this?", images=[PICTURE])
    assert run.answer == f"Described.\n\n{NOTE}"
    assert [request.model for request in run.requests] == ["m1", "m2", "m2"]
    await assert_sound(host, run)


@pytest.mark.parametrize("size", [15_000_000])
async def test_B4_a_picture_of_15_mb_is_seen_or_named_and_the_answer_comes(size: int) -> None:
    picture = "data:image/png;base64," + "A" * size
    host = host_with(replies=["Large.", "Yes."])
    run = await host.say("What is this?", images=[picture])
    assert (run.status, run.answer) == ("completed", "Large.")
    assert [len(url) for url in pictures(run.requests[-1])] == [len(picture)]
    second = await host.say("Sure?")
    assert second.answer == "Yes."
    assert "[image]" in second.requests[0].text


async def test_B4_a_picture_too_large_for_the_way_to_the_model_is_named_instead() -> None:
    long = "word " * 300_000
    host = host_with(
        models=[Model("m1", default="Answered.", window=None)], config={"context-window-tokens": 2_000_000}
    )
    host.remember(("user", long), ("assistant", "I see."))
    run = await host.say("What is this?", images=["data:image/png;base64," + "A" * 15_800_000])
    assert run.answer == f"Answered.\n\n{NOTE}"
    assert [pictures(request) for request in run.requests] == [[]]
    await assert_sound(host, run)


async def test_B5_hollow_pictures_of_the_history_become_words() -> None:
    host = host_with(replies=["A cat.", "Yes."])
    await host.say("What is this?", images=[PICTURE], attachments=[VOICE, FILE])
    run = await host.say("Sure?")
    text = run.requests[0].text
    assert pictures(run.requests[0]) == []
    assert "[image]" in text and "[voice message]" in text and "[file: plan.pdf]" in text
    await assert_sound(host, run)


async def test_B4_a_quoted_picture_and_text_are_part_of_the_message() -> None:
    host = host_with(replies=["Both."])
    run = await host.say("she said: look\nIs that so?", images=[PICTURE, PICTURE + "="])
    assert len(pictures(run.requests[0])) == 2
    assert run.answer == "Both."


async def test_B4_a_sticker_with_nothing_in_it_is_answered() -> None:
    run = await host_with(replies=["Hm?"]).say(None)
    assert (run.answer, run.requests[0].last_user) == ("Hm?", "[empty message]")


async def test_Q4_a_picture_and_a_model_that_is_away_end_as_any_failure() -> None:
    host = host_with(models=[Model("m1", default=lambda _request: Reply(error=Reason.CONNECTION))])
    host.fail("steering_pull", Fault.error())
    run = await host.say("What is this?", images=[PICTURE])
    assert run.status == "failed"


@pytest.mark.parametrize("how", [*CHATS, "steering"])
async def test_B4_the_address_of_a_file_is_told_and_one_with_a_key_is_not(how: str) -> None:
    key = "https://api.telegram.org/file/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/documents/file_1.pdf"
    files = [
        Attachment("plan.pdf", url="https://files.example/2024/plan.pdf"),
        Attachment("secret.pdf", url=key),
        Attachment("signed.pdf", url="https://files.example/signed.pdf?signature=abc"),
    ]
    run = await said_through(how, "Read these", attachments=files)
    said = run.requests[-1].last_user
    assert "[file: plan.pdf, https://files.example/2024/plan.pdf]" in said
    assert "[file: secret.pdf]" in said and "[file: signed.pdf]" in said
    assert not any("bot123456789" in request.text or "signature=abc" in request.text for request in run.requests)


async def test_B4_two_members_with_one_name_are_told_apart_in_history_message_and_follow_up() -> None:
    group: dict[str, Any] = {"conversation": "group_9"}
    look = Reply(tool_calls=[ToolCall("look")])
    host = host_with(replies=["ok", look, "Done."], tools=[Tool("look")])
    await host.say("I am the owner", sender="u1", sender_name="Ann", **group)
    host.when("call_tool", lambda: host.steer("and me", sender="u8", sender_name="ANN", **group))
    run = await host.say("delete it", sender="u7", sender_name="Ann", **group)
    text = run.requests[-1].text
    for line in ("[Ann (u1)] I am the owner", "[Ann (u7)] delete it", "[ANN (u8)] and me"):
        assert line in text
    await assert_sound(host, run)


# L7: pictures cost what the Host counts for them, and nothing is refused before the Host has counted the question.


def scene(size: int, rows: int, **given: object) -> TestHost:
    models = given.pop("models", None) or [Model("m1", default=model_that())]
    host = host_with(models=models, config=window(size, date_grounding=False), **given)
    chatter(host, Random(1), rows, 160)
    return host


def photos(count: int) -> list[str]:
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
    run = await host.say("What is on these?", images=photos(count))
    assert (run.final_text, shown(host)) == ("Noted.", count)
    assert run.requests[-1].tokens <= budget_of(4_096)
    await assert_sound(host, run)


async def test_L7_pictures_of_tools_keep_their_results_beside_them_when_they_are_cheap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "PER_IMAGE", 60)
    content = mcp_content("a page", *({"type": "image_base64", "image_base64": one} for one in photos(8)))
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
    run = await host.say("What is on these?", images=photos(12))
    assert (run.finish_reason, run.final_text) == ("error", say(Notice.PICTURES_TOO_LARGE, locale))
    assert [line for line in run.logs if "the pictures alone" in line]
    await assert_sound(host, run)


async def test_L7_beside_few_pictures_a_list_of_tools_that_is_too_large_is_named() -> None:
    tools = [Tool(f"tool_{n}", description=prose(Random(n), 120)) for n in range(40)]
    host = scene(4_096, 4, tools=tools)
    run = await host.say("What is on this?", images=photos(1))
    assert run.final_text == say(Notice.TOOLS_TOO_LARGE, Locale.EN_US)


async def test_L7_a_count_of_pictures_that_fails_costs_no_answer() -> None:
    host = scene(8_000, 40)
    host.when("count_tokens", lambda: host.fail("count_tokens", Fault.error()))
    run = await host.say("What is on these?", images=photos(2))
    assert run.final_text == "Noted."
    await assert_sound(host, run)


async def test_Q1_a_chat_without_pictures_is_counted_as_often_as_before() -> None:
    host = scene(4_096, 30)
    run = await host.say("And now?")
    # As it was read, without what may wait, and as it is sent.
    assert run.calls.count("count_tokens") <= 3
