"""Cleans descriptions and JSON schemas of servers for models."""

from __future__ import annotations

import re
from typing import Any

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue

MOST_BYTES = 32 * 1024
MOST_CHARS = 2_000
_DEEPEST = 24
# Keywords that models and providers accept.
_KEPT = frozenset(
    """type properties required items enum const anyOf oneOf allOf description default format
    minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems
    pattern additionalProperties title nullable""".split()
)
# Invisible characters: tags, bidirectional marks, zero-width and format characters.
_INVISIBLE = re.compile(
    "[\U000e0000-\U000e007f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\x00-\x08\x0b-\x1f]"
)
OPEN: JsonObject = {"type": "object", "properties": {}}


def clean_description(text: str) -> str:
    """Removes invisible characters and truncates."""
    visible = _INVISIBLE.sub("", text).strip()
    return visible if len(visible) <= MOST_CHARS else visible[: MOST_CHARS - 1] + "…"


def clean_schema(schema: JsonObject) -> JsonObject:
    """Returns an object schema without references and unknown keywords. An oversized schema
    becomes an open one; the server validates the arguments."""
    whole = _clean_node(schema, schema, 0, ())
    if not isinstance(whole, dict) or len(encode(whole)) > MOST_BYTES:
        return OPEN
    properties = whole.get("properties")
    whole = {**whole, "type": "object"}
    whole["properties"] = properties if isinstance(properties, dict) else {}
    for key in ("title", "anyOf", "oneOf", "allOf"):
        # Providers require plain properties at the top level.
        whole.pop(key, None)
    required = whole.get("required")
    if isinstance(required, list):
        whole["required"] = [name for name in required if name in whole["properties"]]
    return whole


def _clean_node(node: JsonValue, root: JsonObject, depth: int, trail: tuple[str, ...]) -> Any:
    if not isinstance(node, dict):
        return node
    if depth > _DEEPEST:
        return {}
    if isinstance(ref := node.get("$ref"), str):
        # A recursive schema is left open at the recursion.
        target = None if ref in trail else _resolve_ref(ref, root)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        merged = {**target, **rest} if isinstance(target, dict) else rest
        return _clean_node(merged, root, depth + 1, (*trail, ref))
    found: JsonObject = {}
    for key, value in node.items():
        if key in _KEPT:
            found[key] = _keyword(key, value, root, depth, trail)
    return found


def _keyword(
    key: str, value: JsonValue, root: JsonObject, depth: int, trail: tuple[str, ...]
) -> JsonValue:
    match key, value:
        case "properties", dict():
            return {
                str(name): _clean_node(inner, root, depth + 1, trail)
                for name, inner in value.items()
            }
        case (("anyOf" | "oneOf" | "allOf"), list()):
            return [_clean_node(inner, root, depth + 1, trail) for inner in value]
        case (("items" | "additionalProperties"), dict()):
            return _clean_node(value, root, depth + 1, trail)
        case (("description" | "title"), str()):
            return clean_description(value)
        case "items", list():
            return _clean_node(value[0], root, depth + 1, trail) if value else {}
        case _:
            return value


def _resolve_ref(ref: str, root: JsonObject) -> JsonValue:
    """Resolves a local reference; None for others."""
    if not ref.startswith("#"):
        return None
    found: JsonValue = root
    for step in ref.lstrip("#").strip("/").split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if not key:
            continue
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return found


def texts_of(schema: JsonValue) -> list[str]:
    """Returns all texts in a schema."""
    found: list[str] = []
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("description", "title") and isinstance(value, str):
                found.append(value)
            else:
                found += texts_of(value)
    elif isinstance(schema, list):
        for value in schema:
            found += [value] if isinstance(value, str) else texts_of(value)
    return found


def without_texts(schema: JsonValue) -> Any:
    """Removes all texts from a schema."""
    if isinstance(schema, list):
        return [without_texts(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_texts(value)
        for key, value in schema.items()
        if not (key in ("description", "title", "default") and not isinstance(value, dict))
    }
