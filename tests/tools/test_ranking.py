"""S2: the helpers for small models, by the examples of their page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool

from callformats.offered import Offered
from runner.conversation.request import ToolSpec
from runner.host.events import Json
from runner.tools import compact_schema, rank_tools, ranking, validate_args
from runner.tools.ranking import words

ADD = ToolSpec(
    "add_to_cart",
    "Add a product to the cart. Only on a product page.",
    {"type": "object", "properties": {"qty": {"type": "integer", "minimum": 1}}, "required": ["qty"]},
)
QTY = dict(ADD.parameters)
SEARCH = ToolSpec("search_products", "Search the catalogue by a key word.", {"type": "object", "properties": {}})


def test_S2_the_example_of_the_page_ranks_the_cart_first() -> None:
    shown = rank_tools([ADD, SEARCH], "add two mugs to the cart", max=1, recent=["search_products"])
    assert [tool.name for tool in shown] == ["add_to_cart"]
    assert validate_args(shown[0].parameters, {"qty": 0}) == '"qty" must be at least 1.'
    assert compact_schema(SEARCH.parameters) == {"type": "object", "properties": {}}


def test_S2_a_short_list_keeps_its_order_and_is_shortened_all_the_same() -> None:
    long = ToolSpec("b", "x" * 500, {"type": "object", "title": "T", "additionalProperties": False})
    shown = rank_tools([long, ADD], "add to cart", max=2)
    assert [tool.name for tool in shown] == ["b", "add_to_cart"]
    assert len(shown[0].description) == 400
    assert shown[0].parameters == {"type": "object"}


def test_S2_ties_keep_the_order_and_a_recent_tool_wins_two_points() -> None:
    tools = [ToolSpec(name, "", {}) for name in ("alpha", "beta", "gamma")]
    assert [tool.name for tool in rank_tools(tools, "nothing", max=2)] == ["alpha", "beta"]
    assert [tool.name for tool in rank_tools(tools, "nothing", max=2, recent=["gamma"])] == ["gamma", "alpha"]


def test_S2_four_common_letters_count_like_the_word_but_not_for_short_words() -> None:
    tools = [ToolSpec("other", "", {}), ToolSpec("search", "", {}), ToolSpec("cat", "", {})]
    assert rank_tools(tools, "searching", max=1)[0].name == "search"
    assert rank_tools(tools, "cats", max=1)[0].name == "other"


@pytest.mark.parametrize(
    ("query", "best"),
    [("帮我查一下北京的天气", "weather"), ("今日の天気を教えて", "forecast"), ("发送邮件给小王", "mail")],
)
def test_S2_chinese_and_japanese_requests_rank(query: str, best: str) -> None:
    tools = [
        ToolSpec("calculator", "计算数学表达式", {}),
        ToolSpec("mail", "发送邮件给联系人", {}),
        ToolSpec("weather", "查询城市天气", {}),
        ToolSpec("forecast", "今日の天気の予報", {}),
    ]
    assert rank_tools(tools, query, max=1)[0].name == best


def test_S2_a_compact_schema_keeps_eight_keywords_at_every_level() -> None:
    part: dict[str, Json] = {"type": "string", "description": "d" * 200, "pattern": "x", "enum": ["a"], "default": "a"}
    schema: dict[str, Json] = {
        "type": "object",
        "$schema": "s",
        "properties": {"p": part, "l": {"type": "array", "minItems": 1, "items": part}},
        "required": ["p"],
    }
    short = {"type": "string", "description": "d" * 160, "enum": ["a"]}
    assert compact_schema(schema) == {
        "type": "object",
        "properties": {"p": short, "l": {"type": "array", "items": short}},
        "required": ["p"],
    }


SCHEMA: dict[str, Json] = {
    "type": "object",
    "required": ["slug"],
    "properties": {
        "slug": {"type": "string"},
        "qty": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"type": "string", "enum": ["S", "M", "L"]},
        "note": {"type": ["string", "null"]},
    },
}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, 'Missing required argument "slug".'),
        ({"slug": ""}, 'Missing required argument "slug".'),
        ({"slug": "a", "qty": "two"}, '"qty" must be integer, got "two".'),
        ({"slug": "a", "qty": 1.5}, '"qty" must be integer, got 1.5.'),
        ({"slug": "a", "qty": True}, '"qty" must be integer, got true.'),
        ({"slug": "a", "size": "XL"}, '"size" must be one of "S", "M", "L".'),
        ({"slug": "a", "qty": 0}, '"qty" must be at least 1.'),
        ({"slug": "a", "qty": 10}, '"qty" must be at most 9.'),
        ({"slug": "a", "qty": 2.0, "size": "M", "note": None, "unknown": 1}, None),
        ({"qty": "two"}, 'Missing required argument "slug".'),
    ],
)
def test_S2_the_first_problem_has_the_words_of_the_page(args: dict[str, object], problem: str | None) -> None:
    assert validate_args(SCHEMA, args) == problem


@pytest.mark.parametrize("args", [None, [], "x", 1])
def test_S2_arguments_that_are_no_object_are_the_first_problem(args: object) -> None:
    assert validate_args(SCHEMA, args) is not None


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_schema = st.dictionaries(
    st.sampled_from(["type", "properties", "required", "enum", "minimum", "maximum", "items", "description"]), _json
)


@given(_schema, _json)
def test_S2_no_schema_and_no_arguments_make_the_helpers_raise(schema: dict[str, object], args: object) -> None:
    assert len(compact_schema(schema)) <= len(schema)  # type: ignore[arg-type]
    problem = validate_args(schema, args)  # type: ignore[arg-type]
    assert problem is None or problem.endswith(".")


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "add_to_cart", "description": "Add a mug.", "inputSchema": QTY},
        {"name": "add_to_cart", "description": "Add a mug.", "parameters": QTY},
        {"type": "function", "function": {"name": "add_to_cart", "description": "Add a mug.", "parameters": QTY}},
        LLMTool(name="add_to_cart", human_desc="", description="Add a mug.", parameters=QTY, func=print),
    ],
    ids=["descriptor", "bare", "openai", "sdk"],
)
def test_S2_tools_are_taken_in_any_shape_in_which_they_are_handed_over(tool: Offered) -> None:
    (shown,) = rank_tools([tool, {"name": "search_products"}], "add two mugs to the cart", max=1)
    assert (shown.name, shown.description, dict(shown.parameters)) == ("add_to_cart", "Add a mug.", QTY)
    assert validate_args(shown.parameters, {"qty": 0}) == '"qty" must be at least 1.'


def test_S2_what_has_no_name_is_no_tool() -> None:
    with pytest.raises(TypeError, match="without a name"):
        rank_tools([{"description": "x"}], "x")


def test_L12_a_description_is_split_once_however_often_tools_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [ToolSpec(f"tool_{n}", f"finds things of kind {n} for L12", {}) for n in range(50)]
    split: list[str] = []

    def spied(text: str) -> Iterator[str]:
        split.append(text)
        return words(text)

    monkeypatch.setattr(ranking, "words", spied)
    ranking.know(tools)
    for query in ("kind 7", "kind 9", "kind 7"):
        assert rank_tools(tools, query, max=1)[0].name == f"tool_{query[-1]}"
    assert sum(text.startswith("finds") for text in split) == 50
