"""From tools to the schema of an answer."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.core.prompt import ToolSpec
from hermes.providers.embedded.constrained_calls import answer_schema, simplify

WORDS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def test_without_tools_an_answer_is_words() -> None:
    assert answer_schema(()) == WORDS


def test_with_tools_it_is_words_or_one_call() -> None:
    tool = ToolSpec(
        name="ls",
        description="List.",
        parameters={
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where", "minLength": 1}},
            "required": ["path"],
        },
    )
    arguments = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    call = {
        "type": "object",
        "properties": {"tool": {"const": "ls"}, "arguments": arguments},
        "required": ["tool", "arguments"],
        "additionalProperties": False,
    }
    assert answer_schema((tool,)) == {"anyOf": [WORDS, call]}


def test_a_tool_with_an_odd_schema_takes_any_object() -> None:
    for odd in ({}, {"type": "string"}, {"anyOf": [{"type": "object"}]}):
        tool = ToolSpec(name="x", description="", parameters=odd)
        call = answer_schema((tool,))["anyOf"][1]
        assert call["properties"]["arguments"] == {"type": "object"}


def test_only_what_makes_the_shape_is_kept() -> None:
    schema = {
        "title": "T",
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "^a$", "format": "uri", "default": "a"},
            "count": {"type": ["integer", "null"], "minimum": 1, "maximum": 5},
            "mode": {"enum": ["a", "b"]},
            "rows": {"type": "array", "items": {"type": "number", "multipleOf": 2}, "maxItems": 9},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "title": "n"}},
            "any": True,
        },
        "required": ["mode", "gone"],
    }
    assert simplify(schema) == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string"},
            "count": {"type": ["integer", "null"]},
            "mode": {"enum": ["a", "b"]},
            "rows": {"type": "array", "items": {"type": "number"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {},
        },
        "required": ["mode"],
        "additionalProperties": False,
    }


def test_references_are_followed_and_circles_end() -> None:
    schema: JsonObject = {
        "$defs": {
            "Name": {"type": "string", "minLength": 1},
            "Tree": {
                "type": "object",
                "properties": {"name": {"$ref": "#/$defs/Name"}, "left": {"$ref": "#/$defs/Tree"}},
            },
        },
        "type": "object",
        "properties": {
            "name": {"$ref": "#/$defs/Name"},
            "lost": {"$ref": "#/$defs/Nowhere"},
            "tree": {"$ref": "#/$defs/Tree"},
            "either": {"oneOf": [{"$ref": "#/$defs/Name"}, {"type": "integer"}]},
        },
    }
    made = simplify(schema)["properties"]
    assert made["name"] == {"type": "string"}
    assert made["lost"] == {}
    assert made["either"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert made["tree"]["properties"]["left"]["properties"]["name"] == {"type": "string"}
    assert "$ref" not in str(made)
