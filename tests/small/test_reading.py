"""S1, S8: a reply on its way, read with all that a weak model needs."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callformats.quotation import Quotations
from runner.models.reply import Reply
from runner.small.reading import Lenient, Ways
from runner.small.reply_tool import REPLY_SPEC
from tests.callformats.test_stream import TOOLS, chunked, replies

SAID = '{"name": "reply_to_user", "arguments": {"text": "'
FORMS = st.sampled_from([None, "json", "hermes", "pythonic"])
WAYS = st.builds(Ways, form=FORMS, hold=st.booleans(), replies=st.booleans(), live=st.booleans(), guard=st.just(False))
texts = replies | st.tuples(st.sampled_from(["", "\n", "Hm. "]), replies).map(
    lambda two: f'{two[0]}{SAID}{two[1]}"}}}}'
)


def close(text: str, chunks: list[str], ways: Ways) -> tuple[Reply, str]:
    """The reply as it was understood, and all of it that was shown before."""
    reader = Lenient((*TOOLS, REPLY_SPEC) if ways.replies else TOOLS, Quotations(()), ways)
    shown = "".join(reader.feed(chunk) for chunk in chunks)
    return reader.close(Reply(text, (), "m1")), shown


@settings(max_examples=150)
@given(texts, st.lists(st.integers(0, 10_000), max_size=8), WAYS)
def test_S1_what_was_shown_and_what_was_held_are_the_text_however_it_was_cut(
    text: str, cuts: list[int], ways: Ways
) -> None:
    reply, shown = close(text, chunked(text, cuts), ways)
    assert shown + reply.held == reply.text
    whole, _ = close(text, [text], ways)
    assert reply.calls == whole.calls
    assert reply.wrote == whole.wrote
    if ways.hold and not ways.live:
        assert shown == ""
        assert replace(reply, held="") == replace(whole, held="")


UNITS = ["plain words. ", "\\n", '\\"', "<tool_call>", '{"name": ', "get_weather(", "\\u00e4"]
LIVE = Ways(form="json", hold=True, replies=True, live=True, guard=True)


def function_calls(text: str) -> int:
    count = 0

    def note(*_: Any) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        close(text, [text[at : at + 40] for at in range(0, len(text), 40)], LIVE)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_S1_twice_the_reply_takes_twice_the_work(unit: str) -> None:
    varied = (f"{n} {unit}" for n in itertools.count())  # no chant, which would end it
    short, long = ("".join(itertools.islice(varied, count)) for count in (150, 300))
    assert function_calls(SAID + long) <= 3 * function_calls(SAID + short) + 500
