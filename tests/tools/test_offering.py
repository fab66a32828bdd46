"""K3, K7, D3, I3: schemas of strangers: offered so that every provider takes them, made plain, and checked against."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.conversation.request import ToolSpec
from runner.host.events import Json
from runner.tools.offering import Offer, Unofferable, offered_schema, with_names
from runner.tools.plain_schema import plainest
from runner.tools.schemas import check
from tests.tools.odd_schemas import (
    MALFORMED_DEEP,
    ODD,
    ODD_DEFINITIONS,
    VALUES,
    WELL_FORMED,
    as_meant,
    faults,
    is_open,
    values_for,
)

# K3: what is offered lies in the part of JSON Schema that every provider takes, and means the same.


def _offer(parameters: dict[str, Any] | None) -> Offer:
    offer = offered_schema(parameters)
    assert isinstance(offer, Offer), offer
    assert faults(offer.schema) == []
    return offer


def _fields(offer: Offer) -> dict[str, dict[str, Any]]:
    return cast(dict[str, dict[str, Any]], offer.schema["properties"])


def _field(part: Any) -> dict[str, Any]:
    """What one field is offered as."""
    return _fields(_offer({"type": "object", "properties": {"f": part}}))["f"]


@given(
    WELL_FORMED
    | MALFORMED_DEEP
    | st.builds(lambda part: {"$defs": ODD_DEFINITIONS, **(part if isinstance(part, dict) else {})}, ODD)
)
@settings(max_examples=200)
def test_K3_whatever_a_tool_brings_every_provider_takes_what_is_offered(parameters: dict[str, Any]) -> None:
    before = copy.deepcopy(parameters)
    offer = offered_schema(parameters)
    assert parameters == before
    if isinstance(offer, Offer):
        assert faults(offer.schema) == []
        Draft202012Validator.check_schema(dict(offer.schema))
        assert len(str(offer.schema)) < 200_000
        assert offered_schema(parameters) == offer


@given(st.data(), WELL_FORMED)
@settings(max_examples=150)
def test_K3_what_a_tool_accepts_can_be_said_and_what_it_refuses_is_still_refused(
    data: st.DataObject, parameters: dict[str, Any]
) -> None:
    value = data.draw(values_for(parameters))
    offer = offered_schema(parameters)
    if not isinstance(value, dict):
        return
    accepted = Draft202012Validator(parameters).is_valid(value)
    if isinstance(offer, Unofferable):
        assert not accepted
        return
    verdict = check(offer.own, value)
    assert not verdict.validated or (verdict.problems == ()) == accepted
    if accepted and Draft202012Validator(as_meant(parameters)).is_valid(value):
        said = with_names(value, {own: offered for offered, own in offer.fields.items()})
        assert Draft202012Validator(dict(offer.schema)).is_valid(said), (said, offer.schema)


@given(ODD)
@settings(max_examples=150)
def test_K3_a_field_of_any_dialect_takes_every_plain_value_that_it_took(part: Any) -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"f": part}, "$defs": ODD_DEFINITIONS}
    offer = _offer(parameters)
    said = Draft202012Validator(dict(offer.schema))
    for value in VALUES:
        verdict, own = check(parameters, {"f": value}), check(offer.own, {"f": value})
        assert (own.problems == ()) == (verdict.problems == ()) or not own.validated
        if verdict.validated and verdict.problems == () and not is_open(part):
            named = with_names({"f": value}, {own: offered for offered, own in offer.fields.items()})
            assert said.is_valid(named), (value, offer.schema)


@given(WELL_FORMED)
def test_K3_what_lies_in_the_part_already_is_offered_byte_for_byte(parameters: dict[str, Any]) -> None:
    offer = offered_schema(parameters)
    if isinstance(offer, Offer):
        again = _offer(dict(offer.schema))
        assert str(again.schema) == str(offer.schema)
        assert (again.schema is again.own, again.told, again.note) == (True, "", None)


@pytest.mark.parametrize(
    ("part", "offered"),
    [
        (True, {}),
        ({}, {}),
        (None, {}),
        ("string", {}),
        ([], {}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "array", "items": False}, {"type": "array", "items": {}, "maxItems": 0}),
        ({"items": {"type": "string"}}, {"items": {"type": "string"}, "type": "array"}),
        ({"properties": {"a": True}}, {"properties": {"a": {}}, "type": "object"}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"type": "null"}, {"description": "One of null."}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b", "a"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, 3]}, {"type": "integer", "minimum": 1, "maximum": 3, "description": "One of 1, 3."}),
        ({"enum": ["", "a"]}, {"type": "string", "description": 'One of "", "a".'}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": False}, {"type": "integer", "minimum": 0}),
        ({"type": "string", "default": 3}, {"type": "string"}),
        ({"type": "string", "description": ["x"], "x-own": 1, "nullable": True}, {"type": "string"}),
        ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
        ({"type": "object", "required": ["a"]}, {"type": "object", "properties": {"a": {}}, "required": ["a"]}),
        ({"$ref": "#/nowhere"}, {}),
        ({"$ref": "#anchor"}, {}),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, {"type": "string", "minLength": 2}),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, {"type": "number"}),
        ({"anyOf": [{"type": "string"}, {}]}, {}),
        ({"type": "string", "maxLength": 1_000}, {"type": "string", "maxLength": 1_000}),
    ],
)  # fmt: skip
def test_K3_each_odd_form_has_one_that_every_provider_takes(part: Any, offered: Any) -> None:
    found = dict(_field(part))
    rest = str(found.get("description", "")).partition("Must meet")[0].strip()
    assert {**found, "description": rest} == {"description": "", **offered}


def test_K3_a_tuple_becomes_one_schema_and_its_order_is_told_and_still_checked() -> None:
    parts = [{"type": "string"}, {"type": "integer"}]
    for words in ({"prefixItems": parts, "items": False}, {"items": parts}, {"items": parts, "additionalItems": False}):
        schema = {"type": "object", "properties": {"f": {"type": "array", **words}}}
        offer = _offer(schema)
        found = _fields(offer)["f"]
        assert found["items"] == {"anyOf": parts}
        assert '[{"type":"string"},{"type":"integer"}]' in found["description"]
        assert check(offer.own, {"f": ["a", 1]}).problems == ()
        assert check(offer.own, {"f": [1, "a"]}).problems != ()


def test_K3_alternatives_at_the_top_become_one_set_and_the_description_tells_them_apart() -> None:
    file = {"type": "object", "properties": {"name": {"type": "string"}, "content": {"type": "string"}}}
    link = {"type": "object", "properties": {"name": {"type": "string"}, "url": {"type": "string"}}}
    for word in ("anyOf", "oneOf"):
        options = [{**file, "required": ["name", "content"]}, {**link, "required": ["name", "url"]}]
        offer = _offer({"type": "object", "title": "Attach", word: options})
        assert list(_fields(offer)) == ["name", "content", "url"]
        assert (offer.schema["required"], offer.schema["title"]) == (["name"], "Attach")
        assert offer.told == "One of these ways: name, content; name, url."
        assert check(offer.own, {"name": "a", "url": "b"}).problems == ()
        assert check(offer.own, {"name": "a"}).problems != ()
    shapes = [
        {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"properties": {"kind": {"const": "square"}, "w": {"type": "number"}}, "required": ["kind", "w"]},
    ]
    offer = _offer({"oneOf": shapes})
    assert _fields(offer)["kind"] == {"type": "string", "enum": ["circle", "square"]}
    assert offer.told == 'One of these ways: kind "circle", r; kind "square", w.'


def test_K3_what_has_no_word_there_is_told_and_still_checked() -> None:
    part = {"type": "string", "pattern": "^[a-z]+$", "format": "uri", "maxLength": 5_000, "description": "Where."}
    schema = {"type": "object", "properties": {"f": part}}
    offer = _offer(schema)
    words = _fields(offer)["f"]["description"]
    assert words == 'Must meet {"maxLength":5000,"pattern":"^[a-z]+$","format":"uri"}. Where.'
    assert check(offer.own, {"f": "A"}).problems == ('f: must meet pattern "^[a-z]+$", got "A"',)


def test_K3_a_condition_is_told_whole_or_not_at_all() -> None:
    rule = {"if": {"required": ["a"]}, "then": {"required": ["b"]}}
    assert _offer({"type": "object", "properties": {"a": {}}, **rule}).told.startswith('Must meet {"if":')
    long = {**rule, "then": {"required": ["b" * 300]}}
    assert _offer({"type": "object", "properties": {"a": {}}, **long}).told == ""


def test_K3_a_field_that_may_not_be_given_is_left_out_and_a_tool_that_needs_it_too() -> None:
    schema = {"type": "object", "properties": {"a": False, "b": {"type": "string"}}}
    assert list(_fields(_offer(schema))) == ["b"]
    assert isinstance(offered_schema({**schema, "required": ["a"]}), Unofferable)


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "array"},
        {"type": "string"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "array"}]},
        {"allOf": [{"type": "object"}, {"type": "array"}]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"enum": []},
    ],
)
def test_K3_what_no_object_meets_cannot_be_offered(parameters: dict[str, Any]) -> None:
    assert isinstance(offered_schema(parameters), Unofferable)


def test_K3_references_are_told_out_and_trees_end() -> None:
    tree = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
    }
    offer = _offer({"type": "object", "properties": {"root": {"$ref": "#/$defs/t"}}, "$defs": {"t": tree}})
    kids = {"type": "array", "items": {"type": "object"}}
    assert _fields(offer)["root"] == {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "kids": kids},
    }
    own = _offer({"type": "object", "properties": {"me": {"$ref": "#"}}})
    assert _fields(own)["me"] == {"type": "object"}
    fan: dict[str, Any] = {
        f"d{n}": {"properties": {f"p{m}": {"$ref": f"#/$defs/d{m}"} for m in range(20)}} for n in range(20)
    }
    wide = _offer({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": fan})
    assert len(str(wide.schema)) < 30_000


def test_K3_names_of_fields_that_some_provider_refuses_are_exchanged_and_told() -> None:
    parameters = {
        "type": "object",
        "properties": {"城市": {"type": "string", "description": "which"}, "filter[id]": {"type": "integer"}, "": {}},
        "required": ["城市"],
    }
    offer = _offer(parameters)
    (city, filtered, empty) = _fields(offer)
    assert offer.schema["required"] == [city]
    assert _fields(offer)[city] == {"type": "string", "description": "城市: which"}
    assert _fields(offer)[filtered]["description"] == "filter[id]".replace("[", "(").replace("]", ")")
    assert offer.fields == {city: "城市", filtered: "filter[id]", empty: ""}
    taken = _offer(
        {"type": "object", "properties": {"城市": {}, city: {}}}
    )  # a tool may have a field of that very name
    assert len(_fields(taken)) == 2


def test_K3_two_hundred_alternatives_that_are_one_value_each_are_an_enum() -> None:
    options = [{"const": f"v{n}", "description": f"The value {n}."} for n in range(200)]
    assert _field({"oneOf": options})["enum"] == [f"v{n}" for n in range(200)]
    assert "enum" not in _field({"oneOf": options + [{"const": f"w{n}"} for n in range(200)]})


def test_K3_a_large_enum_is_told_by_its_first_values() -> None:
    offer = _offer({"type": "object", "properties": {"f": {"enum": [f"v{n}" for n in range(5_000)]}}})
    found = _fields(offer)["f"]
    assert found["type"] == "string"
    assert "more." in found["description"]
    assert check(offer.own, {"f": "other"}).problems != ()


# K7: the plainest form of a tool.


def tool(properties: Any, **more: Any) -> ToolSpec:
    return ToolSpec("find", "Finds.", {"type": "object", "properties": properties, **more}, altered=True)


def test_K7_fields_keep_their_simple_type_and_their_description() -> None:
    odd = tool(
        {
            "q": {"type": "string", "description": "What.", "pattern": "^a", "examples": ["a"]},
            "most": {"type": "integer", "minimum": 1, "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"$ref": "#/$defs/place"},
        },
        required=["q"],
        additionalProperties=False,
    )
    assert plainest(odd) == ToolSpec(
        "find",
        "Finds.",
        {
            "type": "object",
            "properties": {"q": {"type": "string", "description": "What."}, "most": {"type": "integer"}},
            "required": ["q"],
        },
    )


@pytest.mark.parametrize("needed", [["tags"], ["q", "tags"], ["gone"]])
def test_K7_a_tool_that_needs_more_than_that_is_not_offered(needed: list[str]) -> None:
    assert plainest(tool({"q": {"type": "string"}, "tags": {"type": "array"}}, required=needed)) is None


@pytest.mark.parametrize("properties", [{}, None, [], {"q": True}, {"q": None}, {"q": {"type": ["string", "null"]}}])
def test_K7_whatever_the_fields_are_the_rest_is_the_schema_of_an_object(properties: Any) -> None:
    plain = plainest(tool(properties, required="q"))
    assert plain is not None and plain.parameters == {"type": "object", "properties": {}}


# D3, I3: checking arguments against the schemas of strangers.


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
