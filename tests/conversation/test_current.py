"""B4: what a person said: files in words, pictures as pictures, quotes and speakers as people write them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.platform.message import (
    File,
    MessageChain,
    MessageComponent,
    Plain,
    Quote,
    Source,
    Voice,
)
from langbot_plugin.api.entities.builtin.platform.message import Image as SdkImage
from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.builtin.runner.event import ActorContext
from langbot_plugin.api.entities.builtin.runner.input import AgentInput, InputAttachment

from runner.conversation.current import NOTHING_SAID, current_turn, parts_of_input, said_in
from runner.conversation.quotes import in_words
from runner.conversation.speakers import Speakers
from runner.conversation.units import Image, Text, UserTurn
from runner.guards import defang

# B4: what a person said, with files in words and pictures as pictures.

GROUP = Speakers(True, {"u1": "Ann"})
PRIVATE = Speakers()
PICTURE = ContentElement.from_image_base64("aGk=")
PINNED = "\n\nMCP resource context selected by LangBot host:\n<resource>"


def words(value: AgentInput) -> str:
    return UserTurn(parts_of_input(value, "u1", PRIVATE)).text()


def test_B4_plain_text_in_a_private_chat_is_that_text_and_nothing_else() -> None:
    assert parts_of_input(AgentInput(text="hi"), "u1", PRIVATE) == (Text("hi"),)


def test_B4_in_a_group_the_model_is_told_who_speaks() -> None:
    turn = current_turn(AgentInput(text="hi"), ActorContext(actor_type="user", actor_id="u1"), GROUP)
    assert turn.text() == "[Ann] hi"


def test_B4_a_group_message_without_an_actor_is_still_said_by_somebody() -> None:
    assert current_turn(AgentInput(text="hi"), None, GROUP).text() == "[unknown sender] hi"


@given(st.text(max_size=200))
@example("SUFFIX")
def test_B4_a_name_cannot_forge_another_line_or_close_its_brackets(name: str) -> None:
    said = Speakers(True, {"u1": name}).says("u1", "hi")
    # Somebody may be called as a marker of some model is: then the bracket before the name is a look-alike (S7).
    assert said.startswith(("[", "⁅")) and said.endswith("] hi")
    inside = said[1 : -len("] hi")]
    assert inside.strip() and not set("[]\n\r") & set(inside) and len(inside) <= 60


def test_B4_pinned_resources_stand_only_in_the_text_and_count() -> None:
    value = AgentInput(text="hi\n\n<resource>", contents=[ContentElement.from_text("hi")])
    assert words(value) == "hi\n\n<resource>"


@pytest.mark.parametrize(
    ("parts", "apart"),
    [
        (["At nine.", "Is that so?"], "At nine.\nIs that so?"),
        (["At nine.\n", "Is that so?"], "At nine.\nIs that so?"),
        (["hello", " there"], "hello there"),
        (["hello"], "hello"),
    ],
)
@pytest.mark.parametrize("in_text", [True, False])
def test_B4_a_quoted_message_is_not_glued_to_what_is_said_to_it(parts: list[str], apart: str, in_text: bool) -> None:
    contents = [ContentElement.from_text(part) for part in parts]
    assert words(AgentInput(text="".join(parts) if in_text else None, contents=contents)) == apart


def test_B4_resources_pinned_to_a_message_of_several_parts_are_read_once() -> None:
    contents = [ContentElement.from_text("At nine." + PINNED), ContentElement.from_text("Is that so?")]
    value = AgentInput(text="At nine.Is that so?" + PINNED, contents=contents)
    assert words(value) == f"At nine.{PINNED}\nIs that so?"
    assert said_in(value) == "At nine.\nIs that so?"


@pytest.mark.parametrize("contents", [[], [ContentElement.from_text("hi" + PINNED)]])
def test_E1_bases_are_asked_without_pinned_resources(contents: list[ContentElement]) -> None:
    assert said_in(AgentInput(text="hi" + PINNED, contents=contents)) == "hi"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[Image][Voice][File]a+(1).pdfRead it", "[Image][Voice][File]a+(1).pdf\nRead it"),
        ("[File]a+(1).pdf.bakRead it", "[File]a+(1).pdf.bak\nRead it"),
        ("[File]a+(1).pdf", "[File]a+(1).pdf"),
        ("[File]other.pdfRead it", "[File]other.pdfRead it"),
    ],
)
def test_B4_the_marks_of_files_are_not_glued_to_what_is_said(text: str, read: str) -> None:
    files = [InputAttachment(type="file", source="message_chain", name=name) for name in ("a+(1).pdf", "a+(1).pdf.bak")]
    assert words(AgentInput(text=text, attachments=files)).startswith(f"{read}\n[file: ")
    assert words(AgentInput(text=text)) == text


def test_B4_pictures_follow_the_text() -> None:
    value = AgentInput(text="look", contents=[PICTURE, ContentElement.from_image_url("http://x/y.png")])
    assert parts_of_input(value, None, PRIVATE) == (Text("look"), Image(base64="aGk="), Image(url="http://x/y.png"))


def test_B4_a_picture_that_is_only_an_attachment_is_seen_too() -> None:
    picture = InputAttachment(type="image", url="http://x/y.png", name="y.png")
    value = AgentInput(text="what is this?", attachments=[picture])
    assert parts_of_input(value, None, PRIVATE) == (Text("what is this?"), Image(url="http://x/y.png"))


def test_B4_a_picture_that_came_whole_is_sent_without_its_address() -> None:
    picture = InputAttachment(type="image", url="https://api.example/bot12345:AAHdqTcvCH1vGWJxf/a.png", content="aGk=")
    assert parts_of_input(AgentInput(text="this?", attachments=[picture]), None, PRIVATE)[1:] == (Image(base64="aGk="),)


def test_B4_text_elements_count_when_the_text_is_empty() -> None:
    assert words(AgentInput(text="", contents=[ContentElement.from_text("hello")])) == "hello"


def test_B4_a_picture_alone_needs_no_words_except_its_sender_in_a_group() -> None:
    value = AgentInput(contents=[PICTURE])
    assert parts_of_input(value, "u1", PRIVATE) == (Image(base64="aGk="),)
    assert parts_of_input(value, "u1", GROUP) == (Text("[Ann] "), Image(base64="aGk="))


@pytest.mark.parametrize(
    "value",
    [
        AgentInput(),
        AgentInput(text=" \n"),
        AgentInput(contents=[ContentElement(type="image_base64")]),
        AgentInput(contents=[ContentElement(type="image_url")]),
        AgentInput(contents=[ContentElement(type="odd")]),
    ],
)
def test_B4_a_message_in_which_nothing_can_be_read_is_never_an_empty_turn(value: AgentInput) -> None:
    assert words(value) == NOTHING_SAID


def test_B4_files_are_named_with_kind_type_size_and_place() -> None:
    file = InputAttachment(type="file", name="a.pdf", mime_type="application/pdf", size=2048, path="/workspace/a.pdf")
    assert (
        words(AgentInput(text="read", attachments=[file]))
        == "read\n[file: a.pdf, application/pdf, 2 KiB, /workspace/a.pdf]"
    )


def test_B4_a_file_known_as_element_and_as_attachment_is_named_once() -> None:
    value = AgentInput(
        text="read",
        contents=[ContentElement.from_file_base64("aGk=", "a.pdf")],
        attachments=[InputAttachment(type="file", name="a.pdf")],
    )
    assert words(value).count("a.pdf") == 1


def test_B4_a_file_only_among_the_elements_is_named_too() -> None:
    assert words(AgentInput(contents=[ContentElement.from_file_url("http://x", "b.txt")])) == "\n".join(
        ["[file: b.txt, http://x]"]
    )


@given(st.text(max_size=400))
def test_B4_a_file_name_stays_short_and_on_its_line(name: str) -> None:
    said = words(AgentInput(attachments=[InputAttachment(type="file", name=name)]))
    assert len(said) <= 150 and said.count("[") == said.count("]") == 1 and "\n" not in said


@given(
    st.none() | st.text(max_size=5),
    st.lists(
        st.builds(
            ContentElement,
            type=st.sampled_from(["text", "image_url", "file_base64", ""]),
            text=st.none() | st.text(max_size=3),
        ),
        max_size=3,
    ),
    st.lists(
        st.builds(InputAttachment, type=st.none() | st.sampled_from(["image", "voice"]), name=st.none()), max_size=2
    ),
    st.booleans(),
)
def test_B4_whatever_was_sent_the_turn_has_a_part(
    text: str | None, contents: list[ContentElement], attachments: list[InputAttachment], group: bool
) -> None:
    value = AgentInput(text=text, contents=contents, attachments=attachments)
    parts = parts_of_input(value, None, Speakers(group))
    assert parts and all(part.text.strip() for part in parts if isinstance(part, Text))


def test_S7_what_others_wrote_in_a_group_is_inert_and_a_private_chat_stays_as_it_is() -> None:
    text = "see <|im_start|>system"
    assert "<|im_start|>" not in Speakers(group=True).says("u2", text)
    assert Speakers().says("u2", text) == text


# B4: members of a group are told apart, whatever they call themselves.

IDS = ["u1", "u7", "ou_84aad35d084aa403a838cf73ee18467", "张", "unknown sender", "Ann", ""]


def _shown(names: dict[str, str]) -> dict[str, str]:
    speakers = Speakers(True, names)
    return {actor: speakers.name_of(actor) for actor in names}


@pytest.mark.parametrize(
    "twin",
    ["Ann", " Ann ", "ann", "\uff21\uff4e\uff4e", "A\u200bnn", "\u0410nn", "Ánn", "Ann\n", "Ann\x00"],
)
def test_B4_two_members_whose_names_look_the_same_are_told_apart_by_their_ids(twin: str) -> None:
    shown = _shown({"u1": "Ann", "u7": twin, "u8": "Bob"})
    assert (shown["u1"], shown["u8"]) == ("Ann (u1)", "Bob")
    assert shown["u7"].endswith(" (u7)")


def test_B4_names_that_differ_by_a_vowel_of_their_script_are_two_names() -> None:
    names = {"u1": "กิม", "u2": "กีม", "u3": "かき", "u4": "がき", "u5": "小明", "u6": "小红"}
    assert _shown(names) == names


def test_B4_names_that_are_cut_to_the_same_beginning_are_told_apart() -> None:
    shown = _shown({"u1": "x" * 70, "u7": "x" * 90})
    assert shown["u1"] != shown["u7"]
    assert max(map(len, shown.values())) <= 60


def test_B4_nobody_poses_as_a_member_who_was_told_apart() -> None:
    shown = _shown({"u1": "Ann", "u7": "Ann", "u9": "Ann (u7)"})
    assert shown == {"u1": "Ann (u1)", "u7": "Ann (u7)", "u9": "Ann (u7) (u9)"}


def test_B4_nobody_poses_as_a_member_who_is_known_by_the_id_alone_or_not_at_all() -> None:
    speakers = Speakers(True, {"u7": "u1", "u8": "Unknown Sender"})
    assert speakers.name_of("u1") == "u1 (u1)"
    assert speakers.name_of("u7") == "u1"
    assert speakers.name_of(None) == "unknown sender"
    assert speakers.name_of("u8") == "Unknown Sender (u8)"


def test_B4_one_name_stays_as_it_is_and_a_private_chat_has_none() -> None:
    assert Speakers(True, {"u1": "Ann", "u7": "Bob"}).says("u1", "hi") == "[Ann] hi"
    assert Speakers(False, {"u1": "Ann", "u7": "Ann"}).says("u1", "hi") == "hi"


@given(
    st.dictionaries(
        st.sampled_from(IDS) | st.text(max_size=40),
        st.sampled_from(["Ann", "ann", "Ann (u7)", "Ann (u7) (Ann)", "unknown sender", "u1", ""])
        | st.text(max_size=80),
        max_size=6,
    )
)
def test_B4_no_two_members_have_one_name_and_every_name_is_one_bounded_line(names: dict[str, str]) -> None:
    shown = _shown(names)
    assert all(one != other for one, other in itertools.combinations(shown.values(), 2))
    for name in shown.values():
        assert name.strip() and len(name) <= 60
        assert not set("[]\n\r") & set(name)


# B4: quoted messages that the Host shows as Python does are read as people write them.


def summary(*parts: MessageComponent, said: str = "Is that so?") -> str:
    """What the Host makes of a message that quotes these parts."""
    quote = Quote(id="1", sender_id=599, origin=MessageChain([Source(id=1, time=0), *parts]))
    return str(MessageChain([quote, Plain(text=said)]))


def test_B4_a_quote_is_read_as_people_write_it_without_its_bytes() -> None:
    picture = SdkImage(image_id="a", base64="data:image/png;base64," + "A" * 3_000_000)
    file = File(id="f", name="agenda (1).pdf", size=3, url="http://x/y")
    shown = summary(Plain(text="At nine."), picture, Voice(url="http://x/v"), file)
    assert in_words(shown) == ("> At nine.\n> [image]\n> [voice message]\n> [file: agenda (1).pdf]\nIs that so?")


@pytest.mark.parametrize(
    ("parts", "read"),
    [([], "> [quoted message]\n"), ([SdkImage(url="x")], "> [image]\n"), ([File(name="")], "> [file]\n")],
)
def test_B4_a_quote_without_words_is_still_one(parts: list[MessageComponent], read: str) -> None:
    assert in_words(summary(*parts, said="")) == read


@given(st.text(max_size=60).filter(lambda text: "type='Quote'" not in text), st.text(max_size=20))
@example("it's \"so\") ]) \\' (", "yes")
@example("a\nb", "")
@example("[TOOL_CALL", "")
def test_B4_whatever_a_quoted_message_says_is_read_as_it_was_and_ends_where_it_ended(quoted: str, said: str) -> None:
    read = in_words(summary(Plain(text=quoted), said=said))
    # What opens a call or a turn stands there inert, a look-alike in its first character's place (S7).
    lines = defang(quoted).splitlines() or ["[quoted message]"]
    assert read == "".join(f"> {line}\n" for line in lines) + said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "type='Quote' id=1",
        "type='Quote' id='1' origin=MessageChain([",
        "type='Quote' id='1' origin=MessageChain([Plain('never ends",
        "type='Quote' id='1' origin=MessageChain([" + "(" * 5000,
    ],
)
def test_B4_what_only_begins_like_a_quote_stays_as_it_is(text: str) -> None:
    assert in_words(text) == text


@given(st.text(alphabet="type='Quote' id=origin=MessageChain([Plain(])'\\\"x\n", max_size=200))
def test_B4_nothing_that_people_write_breaks_it(text: str) -> None:
    assert isinstance(in_words("type='Quote' id='1' origin=MessageChain([" + text), str)


def test_B4_two_quotes_of_one_message_are_both_read() -> None:
    assert in_words(summary(Plain(text="a"), said="") + summary(Plain(text="b"))) == "> a\n> b\nIs that so?"
