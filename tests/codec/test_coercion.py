"""Arguments get the types of their schema where that is certain."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.codec.coercion import coerce


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("5", "integer", 5),
        ("-5", "integer", -5),
        ("5.5", "integer", "5.5"),
        (5.0, "integer", 5),
        ("5.5", "number", 5.5),
        ("5", "number", 5),
        ("five", "number", "five"),
        ("true", "boolean", True),
        ("False", "boolean", False),
        ("yes", "boolean", "yes"),
        (True, "integer", True),
        ("5", "string", "5"),
        (5, "string", "5"),
        ('["a"]', "array", ["a"]),
        ('{"a": 1}', "object", {"a": 1}),
        ('{"a": 1}', "array", '{"a": 1}'),
        ('{"a": 1}', "string", '{"a": 1}'),
        ("{broken", "object", "{broken"),
        (None, "integer", None),
    ],
)
def test_a_value_gets_the_type_of_its_schema(value: Any, kind: str, expected: Any) -> None:
    found = coerce(value, {"type": kind})
    assert (found, type(found)) == (expected, type(expected))


def test_inner_values_and_alternatives_are_corrected_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": ["integer", "null"]}},
            "inner": {"anyOf": [{"type": "null"}, {"properties": {"on": {"type": "boolean"}}}]},
        },
    }
    given = {"rows": '["1", 2, null]', "inner": {"on": "true"}, "other": "7"}
    assert coerce(given, schema) == {"rows": [1, 2, None], "inner": {"on": True}, "other": "7"}
