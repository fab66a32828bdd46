"""The demo's tools by themselves: what they answer, what they refuse, and what bounds them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyday.components.tools.calculator import MOST_CHARACTERS, calculate
from everyday.components.tools.declared import declared
from everyday.components.tools.desk import Desk
from everyday.components.tools.failing import CannotDo
from everyday.components.tools.notebook import MOST_NOTES, Notebook, read

NOW = datetime(2026, 3, 4, 9, 5, tzinfo=UTC)


def desk() -> Desk:
    """A desk at a fixed moment with an empty notebook of its own."""
    stored = [b""]

    async def load() -> bytes:
        return stored[0]

    async def save(notes: bytes) -> None:
        stored[0] = notes

    return Desk(lambda: NOW, Notebook(load, save))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("12.5 % of 84", "10.5"),
        ("84 × 12.5%", "10.5"),
        ("(200 - 50) ÷ 4 = ?", "37.5"),
        ("7 mod 3", "1"),
        ("50% mod 3", "0.5"),
        ("0.1 + 0.2", "0.3"),
        ("2^10", "1024"),
        ("sqrt(2)", "1.41421356237"),
        ("√(16)", "4"),
        ("－３＋５", "2"),
        ("10 ** -3", "0.001"),
        ("2 ** 1000", "1.07150860719e+301"),
    ],
)
def test_a_sum_is_worked_out_as_people_write_it(expression: str, result: str) -> None:
    assert calculate(expression).rpartition(" = ")[2] == result


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 / 0",
        "12.5 % 84",
        "12.5 % (84)",
        "9 ** 9 ** 9",
        "2 ** 1000000",
        "(2 ** 2000) * (2 ** 2000) * (2 ** 2000)",
        "(-8) ** 0.5",
        "sqrt(-1)",
        "1e999",
        "1,000 + 1",
        "True + 1",
        "'a' * 1000000",
        "[0] * 10",
        "1j",
        "__import__('os').getcwd()",
        "(lambda: 1)()",
        "x + 1",
        "1 if 2 else 3",
        "(" * 150,
        "-" * 199 + "1" + "1",
        "1" * (MOST_CHARACTERS + 1),
    ],
)
def test_what_is_no_sum_or_grows_without_end_is_refused_in_a_sentence(expression: str) -> None:
    with pytest.raises(CannotDo, match=r"\w{2,} "):
        calculate(expression)


@settings(max_examples=300)
@given(st.text(alphabet="0123456789.+-*/%^() ofsqrtabe,_xjl×÷", max_size=60))
def test_the_calculator_answers_or_refuses_whatever_is_written(expression: str) -> None:
    try:
        assert len(calculate(expression)) < 2 * MOST_CHARACTERS
    except CannotDo:
        return


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4))
def test_sums_are_exact(left: int, right: int) -> None:
    assert calculate(f"{left} / {right} * {right}").endswith(f" = {left}")


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("current_time", {}, "It is 09:05, Wednesday 星期三, 2026-03-04 (UTC+0000)."),
        ("current_time", {"place": "Here"}, "It is 09:05, Wednesday 星期三, 2026-03-04 (UTC+0000)."),
        ("calendar", {"date": "tomorrow"}, "2026-03-05 is a Thursday 星期四, week 10, tomorrow."),
        ("calendar", {"date": "后天"}, "2026-03-06 is a Friday 星期五, week 10, in 2 days."),
        ("calendar", {"date": "2026-03-04", "add_days": "-4"}, "2026-02-28 is a Saturday 星期六, week 9, 4 days ago."),
        ("calculate", {"expression": 3}, "3 = 3"),
        ("convert_units", {"value": 5, "from": "miles", "to": "公里"}, "5 mi = 8.04672 km"),
        ("convert_units", {"value": "32", "from": "°F", "to": "celsius"}, "32 °F = 0 °C"),
        ("convert_units", {"value": -40, "from": "摄氏度", "to": "fahrenheit"}, "-40 °C = -40 °F"),
        ("convert_units", {"value": 1.5, "from": "feet", "to": "inches"}, "1.5 ft = 18 in"),
        ("convert_units", {"value": 36, "from": "km/h", "to": "m/s"}, "36 km/h = 10 m/s"),
        ("convert_units", {"value": 2, "from": "斤", "to": "Pounds"}, "2 jin = 2.20462262185 lb"),
        ("list_notes", {}, "The notebook is empty."),
    ],
)
async def test_each_tool_answers_in_a_sentence(tool: str, arguments: Mapping[str, object], answer: str) -> None:
    assert await desk().call(tool, arguments) == answer


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("current_time", {"place": "Nowhere at all"}),
        ("current_time", {"place": "../../etc/passwd"}),
        ("current_time", {"place": ["Tokyo"]}),
        ("calendar", {"date": "soon"}),
        ("calendar", {"date": "today", "add_days": 10**9}),
        ("calendar", {"date": "9999-12-31", "add_days": 1}),
        ("convert_units", {"value": 1, "from": "km", "to": "kg"}),
        ("convert_units", {"value": 1, "from": "parsec", "to": "km"}),
        ("convert_units", {"value": float("nan"), "from": "km", "to": "m"}),
        ("convert_units", {"value": 10**400, "from": "km", "to": "m"}),
        ("convert_units", {"value": True, "from": "km", "to": "m"}),
        ("add_note", {}),
        ("add_note", {"text": "x" * 501}),
        ("search_notes", {"words": " "}),
        ("open_door", {}),
    ],
)
async def test_what_cannot_be_done_is_refused_in_a_sentence(tool: str, arguments: Mapping[str, object]) -> None:
    with pytest.raises(CannotDo, match=r"\w{2,} "):
        await desk().call(tool, arguments)


async def test_the_notebook_adds_lists_and_searches_and_takes_no_note_twice() -> None:
    book = desk()
    await book.call("add_note", {"text": "the  milk is\nempty"})
    await book.call("add_note", {"text": "明天下午三点开会"})
    assert await book.call("add_note", {"text": "the milk is empty"}) == "The note is there already: the milk is empty"
    assert await book.call("list_notes", {}) == "There are 2 notes:\n1. the milk is empty\n2. 明天下午三点开会"
    assert await book.call("search_notes", {"words": "MILK"}) == "1 of 2 notes:\n1. the milk is empty"
    assert await book.call("search_notes", {"words": "开会"}) == "1 of 2 notes:\n1. 明天下午三点开会"
    assert await book.call("search_notes", {"words": "bread"}) == "None of the 2 notes holds it."


async def test_the_notebook_is_bounded() -> None:
    book = desk()
    for number in range(MOST_NOTES):
        await book.call("add_note", {"text": f"note {number}"})
    with pytest.raises(CannotDo, match="full"):
        await book.call("add_note", {"text": "one more"})


@given(st.binary(max_size=60))
def test_a_damaged_notebook_is_an_empty_one(stored: bytes) -> None:
    assert all(isinstance(note, str) for note in read(stored))


async def test_every_declared_tool_is_one_that_the_desk_has() -> None:
    for tool in declared():
        assert tool.description and tool.parameters["type"] == "object"
        try:
            await desk().call(tool.name, {})
        except CannotDo as refused:
            assert "there is no tool" not in str(refused)
    assert len(declared()) == 7
