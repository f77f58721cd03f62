from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.core.prompt import ToolSpec
from hermes.providers.profile import ModelProfile
from hermes.providers.wire.vendor_fields import tool_schema

REDUCED = ModelProfile(schemas="reduced")
WORDS = {
    "type", "description", "enum", "items", "properties", "required", "anyOf", "minimum",
    "maximum", "minItems", "maxItems",
}  # fmt: skip


def reduced(parameters: JsonObject) -> JsonObject:
    return tool_schema(ToolSpec(name="t", description="", parameters=parameters), REDUCED)


def of(property: JsonObject, **rest: Any) -> JsonObject:
    """What becomes of one property."""
    made = reduced({"type": "object", "properties": {"p": property}, **rest})
    return dict(made["properties"]["p"])


@pytest.mark.parametrize(
    ("given_schema", "made"),
    [
        ({"type": "string", "pattern": "^a", "format": "uri", "default": "a"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "How many."},
            {"type": "integer", "description": "How many."},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
            {"anyOf": [{"type": "string"}, {"type": "number"}]},
        ),
        ({"const": "only"}, {"type": "string", "enum": ["only"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({}, {"type": "string"}),
        (
            {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        (
            {"allOf": [{"properties": {"a": {"type": "number"}}}], "properties": {"b": {}}},
            {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "string"}},
            },
        ),
    ],
)
def test_what_cannot_be_said_is_left_open(given_schema: JsonObject, made: JsonObject) -> None:
    assert of(given_schema) == made


def test_references_are_followed_even_in_circles() -> None:
    definitions = {
        "Leaf": {"type": "integer", "minimum": 0},
        "Tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}},
    }
    assert of({"$ref": "#/$defs/Leaf"}, **{"$defs": definitions}) == {
        "type": "integer",
        "minimum": 0,
    }
    assert of({"$ref": "#/$defs/Tree"}, **{"$defs": definitions})["type"] == "object"
    assert of({"$ref": "#/$defs/Missing"}) == {"type": "string"}
    branches = {f"b{n}": {"$ref": "#/$defs/Self"} for n in range(9)}
    knot = {"Self": {"properties": branches, "allOf": [{"$ref": "#/$defs/Self"}]}}
    made = of({"$ref": "#/$defs/Self"}, **{"$defs": knot})
    assert made["properties"] == {f"b{n}": {"type": "object"} for n in range(9)}


def test_a_property_may_be_called_like_a_word_of_the_schema() -> None:
    names = {"type": {"type": "string"}, "pattern": {"type": "string"}, "enum": {"type": "number"}}
    made = reduced({"type": "object", "properties": names})
    assert made["properties"] == names


def test_full_schemas_stay_as_they_are() -> None:
    parameters = {"type": "object", "properties": {"p": {"type": "string", "pattern": "a"}}}
    tool = ToolSpec(name="t", description="", parameters=parameters)
    assert tool_schema(tool, ModelProfile()) == parameters
    assert "pattern" not in str(tool_schema(tool, ModelProfile(patterns=False)))


KEYS = st.sampled_from(
    [*sorted(WORDS), "$ref", "oneOf", "allOf", "const", "format", "additionalProperties", "$defs"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["string", "object", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)


def check(node: Any) -> None:
    assert set(node) <= WORDS
    assert ("anyOf" in node) != ("type" in node)
    assert isinstance(node.get("type", ""), str)
    for inner in (*node.get("properties", {}).values(), *node.get("anyOf", ())):
        check(inner)
    if "items" in node:
        check(node["items"])


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_any_schema_becomes_one_of_the_known_words(parameters: JsonObject) -> None:
    check(reduced(parameters))
