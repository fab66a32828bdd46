"""B4, B5, C1: pictures, voices, files and quotes as they come in a private chat, in a group and while a run goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.host import Attachment, Fault, Model, ModelRequest, Reason, Reply, RunRecord, Tool, ToolCall
from tests.host.incoming import Incoming
from tests.host.plugin import RUNNER_ID
from tests.runs.scenes import assert_sound, host_with

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
