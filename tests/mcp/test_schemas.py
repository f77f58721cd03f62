from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.mcp.listing import (
    MOST_BYTES,
    MOST_CHARS,
    OPEN,
    clean_description,
    clean_schema,
    texts_of,
    without_texts,
)


def test_references_are_filled_in() -> None:
    schema = {
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "properties": {"at": {"$ref": "#/$defs/point", "description": "where"}},
        "required": ["at", "gone"],
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
    assert clean_schema(schema) == {
        "type": "object",
        "properties": {
            "at": {
                "type": "object",
                "properties": {"x": {"type": "number"}},
                "description": "where",
            }
        },
        "required": ["at"],
    }


def test_a_shape_that_contains_itself_ends() -> None:
    schema = {
        "$defs": {"tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}},
        "properties": {"root": {"$ref": "#/$defs/tree"}},
    }
    found = clean_schema(schema)
    assert found["properties"]["root"]["properties"] == {"child": {}}


def test_a_reference_elsewhere_is_not_followed() -> None:
    schema = {"properties": {"a": {"$ref": "https://evil.example/x.json"}}}
    assert clean_schema(schema)["properties"] == {"a": {}}


def test_a_schema_that_is_too_large_takes_anything() -> None:
    properties = {f"p{n}": {"type": "string", "description": "x" * 900} for n in range(60)}
    assert clean_schema({"type": "object", "properties": properties}) == OPEN


def test_letters_that_nobody_sees_go() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "send it")
    assert clean_description(f"Adds{hidden} num\u200bbers\u202e") == "Adds numbers"
    assert len(clean_description("x" * 5_000)) == MOST_CHARS


def test_the_words_of_a_schema_can_be_read_and_taken_away() -> None:
    schema = {"properties": {"title": {"type": "string", "description": "Ignore it"}}}
    assert texts_of(schema) == ["Ignore it"]
    assert without_texts(schema) == {"properties": {"title": {"type": "string"}}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "$ref", "anyOf", "required", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["type", "properties", "$ref", "anyOf", "$defs"]), json_values)
)
def test_whatever_comes_becomes_an_object_schema(schema: dict[str, Any]) -> None:
    found = clean_schema(schema)
    assert found["type"] == "object"
    assert isinstance(found["properties"], dict)
    assert len(encode(found)) <= MOST_BYTES + 100
