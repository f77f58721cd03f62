"""Checks JSON values against a JSON Schema: the keywords that models and tools use."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue

MAX_ERRORS = 10
MAX_DEPTH = 50

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
}


def schema_errors(value: JsonValue, schema: JsonValue) -> tuple[str, ...]:
    """Return why the value does not fit, one sentence each; empty if it fits. Unknown keywords are
    ignored."""
    errors: list[str] = []
    for error in _check(value, schema, "$", 0):
        errors.append(error)
        if len(errors) == MAX_ERRORS:
            break
    return tuple(errors)


def _check(value: JsonValue, schema: JsonValue, path: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{path} is not allowed."
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return
    names = schema.get("type")
    kinds = [names] if isinstance(names, str) else names or []
    if kinds and not any(_is_type(value, kind) for kind in kinds):
        yield f"{path} must be {' or '.join(map(str, kinds))}."
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path} must be one of {schema['enum']}."
    if "const" in schema and value != schema["const"]:
        yield f"{path} must be {schema['const']!r}."
    if isinstance(value, dict):
        yield from _check_object(value, schema, path, depth)
    elif isinstance(value, list):
        yield from _check_array(value, schema, path, depth)
    elif isinstance(value, str):
        yield from _check_text(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(value, schema, path)
    yield from _check_combined(value, schema, path, depth)


def _is_type(value: JsonValue, kind: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "number":
        return is_number
    if kind == "integer":
        return is_number and math.isfinite(value) and value == int(value)
    return isinstance(value, _TYPES.get(str(kind), (object,)))


def _check_object(value: JsonObject, schema: JsonObject, path: str, depth: int) -> Iterator[str]:
    properties = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value:
            yield f"{path}.{name} is missing."
    rest = schema.get("additionalProperties", True)
    for name, each in value.items():
        inner = properties.get(name, rest)
        if inner is False:
            yield f"{path}.{name} is not allowed."
        else:
            yield from _check(each, inner, f"{path}.{name}", depth + 1)


def _check_array(
    value: list[JsonValue], schema: JsonObject, path: str, depth: int
) -> Iterator[str]:
    yield from _check_size(len(value), schema, "minItems", "maxItems", f"{path} must have", "items")
    if schema.get("uniqueItems") and any(each in value[:n] for n, each in enumerate(value)):
        yield f"{path} must not repeat items."
    for index, each in enumerate(value):
        yield from _check(each, schema.get("items"), f"{path}[{index}]", depth + 1)


def _check_text(value: str, schema: JsonObject, path: str) -> Iterator[str]:
    size = len(value)
    yield from _check_size(
        size, schema, "minLength", "maxLength", f"{path} must have", "characters"
    )
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        try:
            if not re.search(pattern, value):
                yield f"{path} must match {pattern}."
        except re.error:
            return


def _check_number(value: float, schema: JsonObject, path: str) -> Iterator[str]:
    yield from _check_size(value, schema, "minimum", "maximum", f"{path} must be", "")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, int | float) and value <= above:
        yield f"{path} must be more than {above}."
    if isinstance(below, int | float) and value >= below:
        yield f"{path} must be less than {below}."


def _check_size(
    size: float, schema: JsonObject, least: str, most: str, words: str, unit: str
) -> Iterator[str]:
    low, high = schema.get(least), schema.get(most)
    if isinstance(low, int | float) and size < low:
        yield f"{words} at least {low} {unit}".rstrip() + "."
    if isinstance(high, int | float) and size > high:
        yield f"{words} at most {high} {unit}".rstrip() + "."


def _check_combined(value: JsonValue, schema: JsonObject, path: str, depth: int) -> Iterator[str]:
    for each in schema.get("allOf") or ():
        yield from _check(value, each, path, depth + 1)
    for word in ("anyOf", "oneOf"):
        choices = schema.get(word) or ()
        fitting = sum(not [*_check(value, each, path, depth + 1)] for each in choices)
        if choices and (fitting == 0 or (word == "oneOf" and fitting > 1)):
            yield f"{path} must fit {'exactly one' if word == 'oneOf' else 'one'} of the choices."
    if "not" in schema and not [*_check(value, schema["not"], path, depth + 1)]:
        yield f"{path} must not fit what `not` describes."
