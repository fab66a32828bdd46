"""S8: the reply tool's text, decoded while it is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.small.reply_tool import ReplyDecoder


def written(text: str, *, ascii_only: bool, lead: str = "") -> str:
    call = {"name": "reply_to_user", "arguments": {"text": text}}
    return lead + json.dumps(call, ensure_ascii=ascii_only)


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    st.booleans(),
    st.sampled_from(["", "\n", "```json\n", "<tool_call>\n"]),
    st.data(),
)
def test_S8_any_cutting_gives_the_text_and_only_ever_a_beginning_of_it(
    text: str, ascii_only: bool, lead: str, data: st.DataObject
) -> None:
    raw = written(text, ascii_only=ascii_only, lead=lead)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    decoder = ReplyDecoder()
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        decoder.feed(raw[start:end])
        assert text.startswith(decoder.text)
    assert decoder.text == text


@pytest.mark.parametrize(
    "raw",
    [
        '{"name": "get_weather", "arguments": {"text": "Oslo"}}',
        'I say {"name": "reply_to_user", "arguments": {"text": "hi"}}',
        "plain words",
        "x" * 1_000,
    ],
)
def test_S8_nothing_but_a_call_of_the_reply_tool_at_the_beginning_is_shown(raw: str) -> None:
    decoder = ReplyDecoder()
    assert "".join(map(decoder.feed, raw)) == ""


def test_S8_broken_escapes_neither_crash_nor_show_markup() -> None:
    decoder = ReplyDecoder()
    decoder.feed('{"name": "reply_to_user", "arguments": {"text": "a\\ud83dxx12345\\uzzzz\\q b"}}')
    assert '"' not in decoder.text
    assert decoder.text.startswith("a")
