"""Reduces tool schemas to what each endpoint accepts: full, without patterns, or a small subset."""

from __future__ import annotations

from functools import lru_cache

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.prompt import ToolSpec
from hermes.providers.profile import ModelProfile
from hermes.providers.scrub import clean_json
from hermes.providers.wire.loose import object_of, objects_of

_KEPT_KEYWORDS = ("description", "minimum", "maximum", "minItems", "maxItems")
_MAX_DEPTH = 24


class _ToolIdentity:
    """A cache key by identity: the sessions of a process share their tools."""

    __slots__ = ("tool",)

    def __init__(self, tool: ToolSpec) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return id(self.tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ToolIdentity) and self.tool is other.tool


def tool_schema(tool: ToolSpec, profile: ModelProfile) -> JsonObject:
    """The tool's JSON Schema without unsupported keywords. Shared: do not modify."""
    return _schema(_ToolIdentity(tool), profile.schemas == "reduced", profile.patterns)


@lru_cache(maxsize=1024)
def _schema(same: _ToolIdentity, reduce: bool, patterns: bool) -> JsonObject:
    parameters: JsonObject = clean_json(same.tool.parameters)
    if reduce:
        return _Reducer(parameters).reduce(parameters)
    return parameters if patterns else _without_patterns(parameters)


def _without_patterns(schema: JsonObject) -> JsonObject:
    return {
        key: _plain(value, inside=key == "properties")
        for key, value in schema.items()
        if key not in ("pattern", "format")
    }


def _plain(value: object, *, inside: bool) -> object:
    """Inside `properties`, keys are argument names, not schema keywords."""
    if isinstance(value, list):
        return [_plain(item, inside=False) for item in value]
    if not isinstance(value, dict):
        return value
    if inside:
        return {name: _plain(item, inside=False) for name, item in value.items()}
    return _without_patterns(value)


class _Reducer:
    """Rewrites a schema with keywords that every endpoint supports: one type each, properties,
    items, string enums and anyOf. What they cannot express is left open, and so is a recursive
    definition. `path` lists the definitions being expanded."""

    def __init__(self, root: JsonObject) -> None:
        held = (*object_of(root.get("definitions")).items(), *object_of(root.get("$defs")).items())
        self._definitions = {name: node for name, node in held if isinstance(node, dict)}

    def reduce(self, node: JsonValue, path: tuple[str, ...] = (), *, depth: int = 0) -> JsonObject:
        if not isinstance(node, dict) or depth > _MAX_DEPTH:
            return {"type": "string"}
        node, path = self._resolve(node, path)
        kept = {name: node[name] for name in _KEPT_KEYWORDS if name in node}
        choices = _choices(node)
        if len(choices) > 1:
            made = [self.reduce(choice, path, depth=depth + 1) for choice in choices]
            return {**kept, "anyOf": made}
        if choices:
            return {**self.reduce(choices[0], path, depth=depth + 1), **kept}
        return {**kept, **self._by_type(node, path, depth)}

    def _resolve(
        self, node: JsonObject, path: tuple[str, ...]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """Follows references and merges all parts of `allOf`."""
        while (name := str(node.get("$ref", "")).rpartition("/")[2]) in self._definitions:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            inner = {"type": "object"} if name in path else self._definitions[name]
            node, path = {**inner, **rest}, (*path, name)
        for part in objects_of(node.get("allOf")):
            joined, path = self._resolve(part, path)
            node = _merge_schemas(node, joined)
        return node, path

    def _by_type(self, node: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        kind = _type_of(node)
        if kind == "object":
            return {"type": kind, **self._members(node, path, depth)}
        if kind == "array":
            return {"type": kind, "items": self.reduce(node.get("items"), path, depth=depth + 1)}
        words = [node["const"]] if "const" in node else _list(node.get("enum"))
        if kind == "string" and words and all(isinstance(word, str) for word in words):
            return {"type": kind, "enum": words}
        return {"type": kind}

    def _members(self, node: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return {"properties": {}} if depth == 0 else {}
        made = {n: self.reduce(v, path, depth=depth + 1) for n, v in properties.items()}
        required = [n for n in _list(node.get("required")) if isinstance(n, str) and n in made]
        return {"properties": made, **({"required": required} if required else {})}


def _choices(node: JsonObject) -> list[JsonObject]:
    """The alternatives of a node without null; empty if it has none."""
    for word in ("anyOf", "oneOf"):
        if held := objects_of(node.get(word)):
            return [choice for choice in held if choice.get("type") != "null"]
    kinds = node.get("type")
    if not isinstance(kinds, list):
        return []
    return [{**node, "type": kind} for kind in kinds if isinstance(kind, str) and kind != "null"]


def _type_of(node: JsonObject) -> str:
    kind = node.get("type")
    if isinstance(kind, str) and kind != "null":
        return kind
    if isinstance(node.get("properties"), dict):
        return "object"
    return "array" if "items" in node else "string"


def _merge_schemas(node: JsonObject, part: JsonObject) -> JsonObject:
    properties = {**object_of(part.get("properties")), **object_of(node.get("properties"))}
    required = [*_list(node.get("required")), *_list(part.get("required"))]
    joined = {**part, **node, "required": required}
    return joined | ({"properties": properties} if properties else {})


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
