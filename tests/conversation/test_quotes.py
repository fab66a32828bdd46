"""B4: quoted messages that the Host shows as Python does are read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.platform.message import (
    File,
    Image,
    MessageChain,
    MessageComponent,
    Plain,
    Quote,
    Source,
    Voice,
)

from runner.conversation.quotes import in_words
from runner.guards import defang


def summary(*parts: MessageComponent, said: str = "Is that so?") -> str:
    """What the Host makes of a message that quotes these parts."""
    quote = Quote(id="1", sender_id=599, origin=MessageChain([Source(id=1, time=0), *parts]))
    return str(MessageChain([quote, Plain(text=said)]))


def test_B4_a_quote_is_read_as_people_write_it_without_its_bytes() -> None:
    picture = Image(image_id="a", base64="data:image/png;base64," + "A" * 3_000_000)
    file = File(id="f", name="agenda (1).pdf", size=3, url="http://x/y")
    shown = summary(Plain(text="At nine."), picture, Voice(url="http://x/v"), file)
    assert in_words(shown) == ("> At nine.\n> [image]\n> [voice message]\n> [file: agenda (1).pdf]\nIs that so?")


@pytest.mark.parametrize(
    ("parts", "read"),
    [([], "> [quoted message]\n"), ([Image(url="x")], "> [image]\n"), ([File(name="")], "> [file]\n")],
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
