"""K4: one call is one call, however its server tells it; two calls are two."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models import call_text
from runner.models import calls as calls_of_a_reply
from runner.models.calls import Fragments, RawCall

Fragment = tuple[str, str, str]
"""Id, name and text."""


def read(*fragments: Fragment) -> tuple[RawCall, ...]:
    reader = Fragments()
    for call_id, name, text in fragments:
        reader.take(call_id, name, text, {})
    return reader.calls()


def told(*fragments: Fragment) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments or "{}")) for call in read(*fragments)]


# --- one call, told oddly --------------------------------------------------------------------------------------------

WHOLE = '{"to": "bob", "n": {"deep": [1, {}]}}'
INSIDE = WHOLE.index('{"deep"')
OTHER_SPELLING = '{ "n":{"deep":[1.0,{}]},"to":"b\\u006fb" }'
BOB = [("send", json.loads(WHOLE))]


@pytest.mark.parametrize(
    "fragments",
    [
        [("c", "send", WHOLE), ("c", "send", WHOLE)],
        [("c", "send", "{}"), ("c", "send", WHOLE)],
        [("c", "send", "null"), ("c", "send", WHOLE)],
        [("c", "send", '""'), ("c", "send", WHOLE)],
        [("c", "send", WHOLE), ("c", "send", OTHER_SPELLING)],
        [("c", "send", WHOLE + WHOLE)],
        [("c", "send", f" {WHOLE}\n{WHOLE} ")],
        [("c", "send", "{}" + WHOLE)],
        [("c", "send", ""), ("c", "", WHOLE[:INSIDE]), ("", "", WHOLE[INSIDE:])],
        [("c", "send", WHOLE[:9]), ("c", "send", WHOLE[:14]), ("c", "send", WHOLE)],
        [("c", "send", ""), ("c", "send", "{"), ("c", "send", WHOLE[:9]), ("c", "send", ""), ("c", "send", WHOLE)],
        [("c", "send", WHOLE[:9]), ("c", "send", WHOLE), ("c", "send", WHOLE)],
        [("A", "send", ""), ("B", "send", WHOLE[:9]), ("B", "send", WHOLE[9:])],
        [("A", "send", WHOLE[:9]), ("B", "send", WHOLE[9:])],
        [("A", "send", WHOLE[:INSIDE]), ("B", "send", '{"deep": [1, {}]}'), ("C", "send", "}")],
        [("A", "send", WHOLE[:INSIDE]), ("B", "", WHOLE[INSIDE:])],
        [
            ("A", "send", WHOLE[: INSIDE - 1]),
            ("B", "send", " "),
            ("C", "send", '{"deep": [1, {}]}'),
            ("D", "send", "}"),
        ],
        [("A", "send", WHOLE[:INSIDE]), ("", "send", WHOLE[INSIDE:])],
        [("A", "send", WHOLE[:INSIDE]), ("B", "send", WHOLE)],
        [("A", "send", ""), ("B", "send", ""), ("C", "send", WHOLE[:9]), ("D", "send", WHOLE[9:])],
        [("call_0", "send", ""), ("chatcmpl-tool-1", "send", WHOLE)],
        [(f"call_{place}", "send", character) for place, character in enumerate(WHOLE)],
        [("c", "send", character) for character in WHOLE + WHOLE],
    ],
)
def test_K4_one_call_is_read_once_with_its_arguments(fragments: list[Fragment]) -> None:
    assert told(*fragments) == BOB


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        ([("c", "f", '{"n": 1}'), ("c", "f", '{"n": 2}')], [("f", {"n": 1}), ("f", {"n": 2})]),
        ([("c", "f", '{"n": 1}{"n": 2}')], [("f", {"n": 1}), ("f", {"n": 2})]),
        ([("c", "f", '{"n": 1}{"n": true}{"n": "1"}')], [("f", {"n": 1}), ("f", {"n": True}), ("f", {"n": "1"})]),
        ([("c", "f", '{"n": 1}'), ("c", "g", '{"n": 1}')], [("f", {"n": 1}), ("g", {"n": 1})]),
        ([("c", "f", ""), ("c", "g", "")], [("f", {}), ("g", {})]),
        ([("c", "f", '{"n": 1}'), ("c", "f", "{}")], [("f", {"n": 1}), ("f", {})]),
        ([("a", "f", '{"n": 1}'), ("b", "f", '{"n": 1}')], [("f", {"n": 1}), ("f", {"n": 1})]),
        ([("a", "f", "{"), ("a", "f", '{"n": 1}'), ("b", "f", '{"n": 1}')], [("f", {"n": 1}), ("f", {"n": 1})]),
        ([("a", "f", "{"), ("a", "f", '{"n": 1}'), ("b", "f", ""), ("b", "f", '{"n": 1}')], [("f", {"n": 1})] * 2),
        ([("a", "f", "{"), ("b", "f", '{"n": 1}'), ("c", "f", '{"n": 1}')], [("f", {"n": 1}), ("f", {"n": 1})]),
        ([("a", "f", "{"), ("a", "f", '{"n": 1}'), ("", "f", '{"n": 1}')], [("f", {"n": 1}), ("f", {"n": 1})]),
        ([("a", "f", ""), ("b", "f", '{"n": 1}')], [("f", {}), ("f", {"n": 1})]),
        ([("call_0", "f", ""), ("call_1", "f", '{"n": 1}')], [("f", {}), ("f", {"n": 1})]),
        ([("a", "f", "{}"), ("b", "f", '{"n": 1}')], [("f", {}), ("f", {"n": 1})]),
        ([("a", "f", ""), ("b", "f", "")], [("f", {}), ("f", {})]),
        ([("a", "f", ""), ("b", "g", '{"n"'), ("b", "g", ": 1}")], [("f", {}), ("g", {"n": 1})]),
        ([("", "f", '{"n": 1}'), ("", "f", '{"n": 1}')], [("f", {"n": 1}), ("f", {"n": 1})]),
        ([("c", "f", '{"t": "{}'), ("c", "f", '{}"}')], [("f", {"t": "{}{}"})]),
        ([("c", "f", '{"'), ("c", "f", '{":1}')], [("f", {"{": 1})]),
        (
            [("c", "f", '{"n": 1}'), ("c", "g", "{}"), ("c", "f", '{"n": 2}')],
            [("f", {"n": 1}), ("g", {}), ("f", {"n": 2})],
        ),
    ],
)
def test_K4_two_calls_stay_two_and_in_their_order(fragments: list[Fragment], calls: list[tuple[str, Any]]) -> None:
    assert told(*fragments) == calls


def test_K4_two_calls_that_are_announced_before_their_arguments_come_stay_two() -> None:
    opened = [("a", "f", ""), ("b", "f", "")]
    rest = [("b", "f", '{"n":'), ("a", "f", '{"n": 1'), ("b", "f", " 2}"), ("a", "f", "}")]
    assert [(call.id, call.arguments) for call in read(*opened, *rest)] == [("a", '{"n": 1}'), ("b", '{"n": 2}')]


@pytest.mark.parametrize(
    ("fragments", "texts"),
    [
        ([("c", "f", "{'n': 1}"), ("c", "f", "{'n': 1}")], ["{'n': 1}"]),
        ([("c", "f", "null"), ("c", "f", "null")], ["null"]),
        ([("c", "f", "nul"), ("c", "f", "l")], ["null"]),
        ([("c", "f", '"'), ("c", "f", '"')], ['""']),
        ([("c", "f", "`"), ("c", "f", "``json\n{}"), ("c", "f", "\n```")], ["```json\n{}\n```"]),
        ([("c", "f", '{"n": 1}'), ("c", "f", "}")], ['{"n": 1}}']),
        ([("c", "f", '{"n": 1}'), ("c", "f", "[2]")], ['{"n": 1}[2]']),
        ([("c", "f", '{"n": 1}{"n": 2} and more')], ['{"n": 1}{"n": 2} and more']),
        ([("c", "f", '{"n": 1}'), ("c", "f", '{"n": broken}')], ['{"n": 1}', '{"n": broken}']),
        ([("A", "f", "{'to':"), ("B", "f", " 'bob'}")], ["{'to': 'bob'}"]),
        ([("A", "f", "{'n': 1}"), ("B", "f", "{'n': 2}")], ["{'n': 1}", "{'n': 2}"]),
        ([("A", "f", "nonsense"), ("B", "f", "nonsense")], ["nonsense", "nonsense"]),
        ([("A", "f", '{"cut'), ("B", "g", '{"n": 1}')], ['{"cut', '{"n": 1}']),
        ([("A", "f", '{"cut": '), ("B", "f", '{"n": 1}')], ['{"cut": ', '{"n": 1}']),
    ],
)
def test_D3_what_is_no_json_is_handed_on_as_it_came_and_spares_the_next_call(
    fragments: list[Fragment], texts: list[str]
) -> None:
    assert [call.arguments for call in read(*fragments)] == texts


def test_K5_a_character_cut_over_two_fragments_is_one() -> None:
    halves = "\U0001f600".encode("utf-16-le")
    first, second = (half.decode("utf-16-le", "surrogatepass") for half in (halves[:2], halves[2:]))
    whole = '{"t": "\U0001f600"}'
    assert [call.arguments for call in read(("c", "f", f'{{"t": "{first}'), ("c", "f", f'{second}"}}'))] == [whole]
    again = [("c", "f", whole), ("c", "f", f'{{"t": "{first}{second}"}}'), ("c", "f", '{"t": "\\ud83d\\ude00"}')]
    assert [call.arguments for call in read(*again)] == [whole]


def test_C2_each_call_keeps_the_fields_that_came_with_it() -> None:
    reader = Fragments()
    for call_id, text, fields in [
        ("a", "", {"x": 1}),
        ("a", '{"n":', {}),
        ("a", " 1}", {"y": 1}),
        ("a", "", {"z": 1}),
        ("a", '{"n": 1}', {"again": 1}),
        ("b", "", {"x": 2}),
        ("b", '{"n": 2}', {}),
        ("b", '{"n": 3}', {"x": 3}),
    ]:
        reader.take(call_id, "f", text, fields)
    first = {"x": 1, "y": 1, "z": 1, "again": 1}
    assert [call.provider_fields for call in reader.calls()] == [first, {"x": 2}, {"x": 3}]


# --- the property ----------------------------------------------------------------------------------------------------

_text = st.text(st.sampled_from('ab{}[]":,\\ \n中😀'), max_size=8) | st.text(max_size=5)
_value = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=2),
    max_leaves=5,
)
_arguments = st.dictionaries(_text, _value, min_size=1, max_size=3)
_spelling: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"ensure_ascii": False}, {"separators": (",", ":")}, {"indent": 1, "ensure_ascii": False}]
)


def pieces(text: str, data: st.DataObject, least: int = 1) -> list[str]:
    """The text in at least so many parts, none of them empty."""
    places = data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), min_size=least - 1, max_size=6))
    return [text[start:end] for start, end in pairwise(sorted({0, *places, len(text)}))]


def plain(text: str, data: st.DataObject) -> list[str]:
    return data.draw(st.sampled_from([[], [""]])) + pieces(text, data)


def resent(text: str, data: st.DataObject) -> list[str]:
    again = json.dumps(dict(reversed(json.loads(text).items())), **data.draw(_spelling))
    return plain(text, data) + data.draw(st.lists(st.sampled_from(["", text, again]), max_size=3))


def glued(text: str, data: st.DataObject) -> list[str]:
    return plain(data.draw(st.sampled_from(["", " ", "\n"])).join([text] * data.draw(st.integers(2, 3))), data)


def opened(text: str, data: st.DataObject) -> list[str]:
    return [data.draw(st.sampled_from(["{}", "null", '""'])), *pieces(text, data)]


def growing(text: str, data: st.DataObject) -> list[str]:
    return data.draw(st.sampled_from([[], [""]])) + list(accumulate(pieces(text, data)))


UNDER_ONE_ID: list[Callable[[str, st.DataObject], list[str]]] = [plain, resent, glued, opened, growing]


def renamed(ids: Sequence[str], text: str, data: st.DataObject) -> list[tuple[str, str]]:
    """Id and text of each fragment, the id another one from some fragment on, or from each to the next."""
    blank = data.draw(st.booleans())
    parts = [*([""] if blank else []), *pieces(text, data, least=2)]
    change = data.draw(st.integers(1, len(parts) - 1))
    each = data.draw(st.booleans())
    return [(ids[place if each else int(place >= change)], part) for place, part in enumerate(parts)]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(["f", "f", "g"]), _arguments), min_size=1, max_size=4), st.data())
def test_K4_however_each_call_is_told_the_calls_are_the_same_once_each(
    calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    """Each call has an id of its own here, so two equal ones are two calls: K4 takes equal calls for one only under one
    id, and says that a new id whose fragment is a whole object begins a new call. That holds behind snapshots that grow
    as well, where the second call repeats the last snapshot of the first to the letter: `{`, `{"n": 1}` under one id
    and `{"n": 1}` under another are two.
    """
    fragments: list[Fragment] = []
    for place, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments, **data.draw(_spelling))
        ids = [f"c{place}_{number}" for number in range(9)]
        if data.draw(st.booleans()):
            fragments += [(an_id, name, part) for an_id, part in renamed(ids, text, data)]
        else:
            fragments += [(ids[0], name, part) for part in data.draw(st.sampled_from(UNDER_ONE_ID))(text, data)]
    read_calls = read(*fragments)
    assert [(call.name, json.loads(call.arguments)) for call in read_calls] == calls
    assert [call.id for call in read_calls] == [f"c{place}_0" for place in range(len(calls))]


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["f", "g"]), _arguments), min_size=1, max_size=4, unique_by=repr), st.data())
def test_K4_different_calls_under_one_id_are_told_apart_however_each_is_told(
    calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    parts: list[Fragment] = []
    for name, arguments in calls:
        text = json.dumps(arguments, **data.draw(_spelling))
        parts += [("c", name, part) for part in data.draw(st.sampled_from([plain, resent, glued]))(text, data)]
    assert told(*parts) == calls


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["", "f", "g"]), _text), max_size=12))
def test_K4_no_fragments_at_all_make_the_reader_fail(fragments: list[Fragment]) -> None:
    came = sum(bool(text) for _, _, text in fragments)
    assert sum(bool(call.arguments.strip()) for call in read(*fragments)) <= came + sum(
        text.count("{") for _, _, text in fragments
    )


# --- its cost --------------------------------------------------------------------------------------------------------

MANY = 50_000


@pytest.mark.parametrize(
    "fragments",
    [
        [("c", "f", character) for character in json.dumps({"t": "{} " * (MANY // 3)})],
        [(f"call_{place}", "f", character) for place, character in enumerate(json.dumps({"t": "x" * MANY}))],
        [("c", "f", "{}")] * MANY,
        [("c", "f", '{"t": "' + "x" * size) for size in range(2_000)],
        [(f"c{size}", "f", '{"t": "' + "x" * size) for size in range(2_000)],
        [("c", "f", "")] * MANY,
    ],
    ids=["cut", "renamed", "repeated", "growing", "growing and renamed", "blank"],
)
def test_K4_reading_costs_no_more_than_what_came(fragments: list[Fragment], monkeypatch: pytest.MonkeyPatch) -> None:
    read_characters = 0
    decode = call_text.decoded

    def counted(text: str, at: int) -> tuple[object, int]:
        nonlocal read_characters
        value, end = decode(text, at)
        read_characters += max(end - at, 1)
        return value, end

    monkeypatch.setattr(call_text, "decoded", counted)
    monkeypatch.setattr(calls_of_a_reply, "decoded", counted)
    assert len(read(*fragments)) == 1
    assert read_characters <= sum(len(text) for _, _, text in fragments) + 10
