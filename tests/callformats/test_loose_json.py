"""S1: the reader of values."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from callformats import read
from callformats.loose_json import State, loads, parse
from runner.host.events import Json

from .offer import TOOLS

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_S1_clean_json_is_read_as_json_and_needs_no_repair(value: Json) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        parsed = loads(text)
        if '"' not in text or "\\ud" not in text:
            assert parsed.value == json.loads(text)
        assert parsed.state is State.WHOLE
        assert not parsed.mended


@given(json_values.filter(lambda value: isinstance(value, dict | list)), st.integers(0, 400))
def test_S1_json_cut_anywhere_never_yields_a_string_that_was_not_finished(value: Json, cut: int) -> None:
    text = json.dumps(value)
    parsed = parse(text[: cut % len(text)])
    if parsed.state is State.OPEN:
        assert _strings(parsed.value) <= _strings(value)


def _strings(value: Json) -> set[str]:
    if isinstance(value, str):
        return {value}
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    if isinstance(value, dict):
        return set(value).union(*map(_strings, value.values()))
    return set()


@given(st.text(alphabet="{}[]()\"'`:=,<>\\nametrufls0123456789.eE+-/* \n", max_size=80))
def test_S1_any_text_is_read_without_a_crash(text: str) -> None:
    parsed = parse(text)
    assert 0 <= parsed.end <= len(text)
    read(text, TOOLS)


_WORDS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "(",
    ")",
    "a",
    "'a'",
    '"a"',
    '"b"',
    "true",
    "True",
    "None",
    "null",
    "1",
    "01",
    ".5",
    "1_0",
    "+1",
    "1e5",
    '"\\u0041"',
    '"\\x41"',
    '"\\\'"',
    "/**/",
]
_PIECES = st.lists(st.sampled_from([*_WORDS, " ", '"\n"', "// x\n"]), max_size=12)


def strict(text: str) -> Json:
    def once(pairs: list[tuple[str, Json]]) -> Json:
        read = dict(pairs)
        assert all(read[name] == value for name, value in pairs)
        return read

    value: Json = json.loads(text, object_pairs_hook=once)
    return value


@given(json_values)
def test_J3_clean_json_is_exact(value: Json) -> None:
    assert loads(json.dumps(value)).exact
    assert loads(json.dumps(value, ensure_ascii=False, indent=2)).exact


@given(_PIECES.map("".join))
@example('{"a": true,}')
@example("[1,]")
@example("{'a': 1}")
@example('{"a": True}')
@example("{a: 1}")
@example('{"a": 1, , "b": 2}')
@example('{"a": "\n"}')
@example('{"a": 1, "a": 2}')
@example('{"a": 1, "a": 1}')
@example('{"a": {}, "a": 2}')
def test_J3_what_is_called_exact_is_json_to_the_letter(text: str) -> None:
    parsed = loads(text)
    if parsed.exact:
        assert parsed.state is State.WHOLE
        assert strict(text) == parsed.value
