"""Corrects arguments by a JSON Schema where models often get the type wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hermes.codec.values import JsonObject, JsonValue

_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def coerce(value: JsonValue, schema: JsonValue) -> JsonValue:
    """Return the value with the types of the schema: "5" becomes 5, "true" becomes True, and JSON
    in a string becomes an array or object. What fits already or cannot be corrected stays."""
    if not isinstance(schema, dict):
        return value
    kinds = tuple(_kinds(schema))
    if kinds and not any(_is(value, kind) for kind in kinds):
        value = _convert(value, kinds)
    if isinstance(value, dict):
        inner = _properties(schema)
        return {name: coerce(each, inner.get(name)) for name, each in value.items()}
    if isinstance(value, list):
        return [coerce(each, schema.get("items")) for each in value]
    return value


def _kinds(schema: JsonObject) -> Iterator[str]:
    """Yield the types that the schema allows, also in its alternatives."""
    own = schema.get("type")
    yield from [own] if isinstance(own, str) else own if isinstance(own, list) else ()
    for each in _alternatives(schema):
        yield from _kinds(each)


def _alternatives(schema: JsonObject) -> Iterator[JsonObject]:
    for name in ("anyOf", "oneOf"):
        for each in schema.get(name) or ():
            if isinstance(each, dict):
                yield each


def _properties(schema: JsonObject) -> JsonObject:
    """The properties of the schema, or of its only alternative that has some."""
    if isinstance(own := schema.get("properties"), dict):
        return own
    found = [inner for each in _alternatives(schema) if (inner := _properties(each))]
    return found[0] if len(found) == 1 else {}


def _is(value: JsonValue, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS.get(kind, ()))


def _convert(value: JsonValue, kinds: tuple[str, ...]) -> JsonValue:
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and "string" in kinds:
        return str(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if "integer" in kinds and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in kinds and _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if text[:1] in ("[", "{"):
        return _decode(text, kinds, value)
    return value


def _decode(text: str, kinds: tuple[str, ...], otherwise: Any) -> JsonValue:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return otherwise
    return found if any(_is(found, kind) for kind in kinds) else otherwise
