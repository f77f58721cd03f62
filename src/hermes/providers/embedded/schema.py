"""The JSON Schema of a reply: text, or a call of one of the tools."""

from __future__ import annotations

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.prompt import ToolSpec

TEXT = "text"
TOOL = "tool"
ARGUMENTS = "arguments"

# Keywords that the runtime reliably turns into a grammar. Tools check number ranges and string
# formats themselves.
_KEPT_KEYWORDS = ("type", "enum", "const")
_CHOICES = ("anyOf", "oneOf")
_MAX_DEPTH = 12
_ANYTHING: JsonObject = {}


def answer_schema(tools: tuple[ToolSpec, ...]) -> JsonObject:
    """Without tools the reply can only be text."""
    words = _record({TEXT: {"type": "string"}}, required=[TEXT])
    if not tools:
        return words
    return {"anyOf": [words, *map(_call, tools)]}


def _call(tool: ToolSpec) -> JsonObject:
    arguments = simplify(tool.parameters)
    if arguments.get("type") != "object":
        arguments = {"type": "object"}
    return _record({TOOL: {"const": tool.name}, ARGUMENTS: arguments}, required=[TOOL, ARGUMENTS])


def simplify(schema: JsonValue) -> JsonObject:
    """The same shape with few keywords and no references; anything unknown is allowed."""
    return _simplify(schema, schema, 0)


def _simplify(schema: JsonValue, root: JsonValue, depth: int) -> JsonObject:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return _ANYTHING
    if isinstance(reference := schema.get("$ref"), str):
        return _simplify(_resolve(reference, root), root, depth + 1)
    for choice in _CHOICES:
        kinds = schema.get(choice)
        if isinstance(kinds, list) and kinds:
            return {"anyOf": [_simplify(kind, root, depth + 1) for kind in kinds]}
    made: JsonObject = {key: schema[key] for key in _KEPT_KEYWORDS if key in schema}
    if isinstance(items := schema.get("items"), dict):
        made["items"] = _simplify(items, root, depth + 1)
    if isinstance(properties := schema.get("properties"), dict) and properties:
        inner = {name: _simplify(kind, root, depth + 1) for name, kind in properties.items()}
        known = [name for name in schema.get("required", ()) if name in inner]
        return _record(inner, required=known)
    if isinstance(more := schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _simplify(more, root, depth + 1)
    return made


def _record(properties: JsonObject, *, required: list[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _resolve(reference: str, root: JsonValue) -> JsonValue:
    """The target of a reference inside the same schema, or None."""
    found = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found
