"""D3, I3: checking arguments against the schemas of strangers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.events import Json
from runner.tools.schemas import check


def _problems(schema: dict[str, Any], arguments: Json) -> tuple[str, ...]:
    return check(schema, arguments).problems


def test_D3_a_problem_names_path_expectation_and_what_came() -> None:
    item = {"type": "object", "properties": {"size": {"enum": ["S", "M"]}}, "additionalProperties": False}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"qty": {"type": "integer", "minimum": 1}, "items": {"type": "array", "items": item}},
        "required": ["qty"],
    }
    assert _problems(schema, {"qty": "two"}) == ('qty: must be integer, got "two"',)
    assert _problems(schema, {}) == ('arguments: must have ["qty"], got an object with 0 fields',)
    assert _problems(schema, {"qty": 0}) == ("qty: must meet minimum 1, got 0",)
    assert _problems(schema, {"qty": 1, "items": [{}, {"size": "XL"}]}) == (
        'items[1].size: must be one of ["S", "M"], got "XL"',
    )
    assert _problems(schema, {"qty": 1, "items": [{"x": 1}]}) == (
        'items[0]: must not have ["x"], got an object with 1 fields',
    )
    assert _problems(schema, {"qty": 2, "items": []}) == ()


def test_D3_problems_are_few_and_short() -> None:
    schema: dict[str, Any] = {"items": {"type": "integer"}, "type": "array"}
    found = _problems(schema, ["x" * 10_000] * 50)
    assert len(found) == 5
    assert all(len(problem) <= 400 for problem in found)


def test_I3_a_remote_reference_makes_no_request_and_blocks_nothing(dialled: list[object]) -> None:
    verdict = check({"properties": {"a": {"$ref": "http://schemas.example/evil.json"}}}, {"a": 1})
    assert (verdict.validated, verdict.problems, dialled) == (False, (), [])
    assert verdict.why


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": []},
        {"required": 5},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"enum": 3},
        {"minimum": "x"},
        {"$schema": 5, "type": ["object", 7]},
        {"allOf": {"a": 1}},
        {"$dynamicRef": "#x"},
    ],
)
def test_D3_a_malformed_schema_never_raises(schema: dict[str, Any]) -> None:
    verdict = check(schema, {"a": 1, "b": [1]})
    assert verdict.validated == (verdict.why is None)


def test_D3_a_schema_deep_or_fanning_out_is_given_up() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"properties": {"a": deep}}
    assert not check(deep, {}).validated
    fan: dict[str, Any] = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4} for n in range(40)}
    assert not check({"$defs": {**fan, "d40": False}, "$ref": "#/$defs/d0"}, {}).validated


def test_D3_a_pattern_is_checked_and_one_that_blows_up_is_let_through() -> None:
    assert _problems({"properties": {"a": {"pattern": "^[0-9]+$"}}}, {"a": "x"})
    assert not _problems({"properties": {"a": {"pattern": "^[0-9]+$"}}}, {"a": "12"})
    assert not _problems({"properties": {"a": {"pattern": "^(a|aa)+$"}}}, {"a": "a" * 60 + "!"})
    assert not _problems({"properties": {"a": {"pattern": "(["}}}, {"a": "x"})


def test_D3_pattern_properties_are_not_evaluated_nor_what_depends_on_them() -> None:
    schema: dict[str, Any] = {"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False}
    assert check(schema, {"a" * 60 + "!": 1}).problems == ()
    named: dict[str, Any] = {"properties": {"patternProperties": {"type": "string"}}, "additionalProperties": False}
    assert _problems(named, {"other": 1})


def test_D3_the_dialect_of_the_schema_is_honoured() -> None:
    draft4: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 3,
        "exclusiveMinimum": True,
    }
    assert _problems(draft4, 3)
    assert check({"$schema": "http://example.org/own", "type": "object"}, 3).problems


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
_keywords = ["type", "properties", "required", "enum", "items", "anyOf", "$ref", "pattern", "allOf", "not", "$defs"]


@given(st.dictionaries(st.sampled_from(_keywords), _json | st.sampled_from(["#", "object", "#/$defs/a"])), _json)
def test_D3_checking_never_raises(schema: dict[str, Any], value: Any) -> None:
    verdict = check(schema, value)
    assert verdict.validated or not verdict.problems
