"""Tool schemas as each endpoint can take them: in full, without patterns, or in a small subset."""

from __future__ import annotations

from functools import lru_cache

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.prompt import ToolSpec
from hermes.providers.profile import ModelProfile
from hermes.providers.scrub import clean_json
from hermes.providers.wire.loose import object_of, objects_of

_KEPT = ("description", "minimum", "maximum", "minItems", "maxItems")
_MOST_DEPTH = 24


class _Same:
    """A tool told by who it is: the sessions of a process share their tools."""

    __slots__ = ("tool",)

    def __init__(self, tool: ToolSpec) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return id(self.tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.tool is other.tool


def tool_schema(tool: ToolSpec, profile: ModelProfile) -> JsonObject:
    """The tool's JSON Schema, without what the endpoint cannot express. Not to be changed."""
    return _schema(_Same(tool), profile.schemas == "reduced", profile.patterns)


@lru_cache(maxsize=1024)
def _schema(same: _Same, reduced: bool, patterns: bool) -> JsonObject:
    parameters: JsonObject = clean_json(same.tool.parameters)
    if reduced:
        return _Reducer(parameters).reduced(parameters)
    return parameters if patterns else _without_patterns(parameters)


def _without_patterns(schema: JsonObject) -> JsonObject:
    return {
        key: _plain(value, inside=key == "properties")
        for key, value in schema.items()
        if key not in ("pattern", "format")
    }


def _plain(value: object, *, inside: bool) -> object:
    """`inside` the map of properties, keys are names of arguments and no words of the schema."""
    if isinstance(value, list):
        return [_plain(item, inside=False) for item in value]
    if not isinstance(value, dict):
        return value
    if inside:
        return {name: _plain(item, inside=False) for name, item in value.items()}
    return _without_patterns(value)


class _Reducer:
    """Rewrites a schema with the words that every endpoint knows: one type each, properties,
    items, string enums and anyOf. What cannot be said with them is left open; so is a definition
    inside itself. `path` are the definitions that are being written out."""

    def __init__(self, root: JsonObject) -> None:
        held = (*object_of(root.get("definitions")).items(), *object_of(root.get("$defs")).items())
        self._definitions = {name: node for name, node in held if isinstance(node, dict)}

    def reduced(self, node: JsonValue, path: tuple[str, ...] = (), *, depth: int = 0) -> JsonObject:
        if not isinstance(node, dict) or depth > _MOST_DEPTH:
            return {"type": "string"}
        node, path = self._resolved(node, path)
        kept = {name: node[name] for name in _KEPT if name in node}
        choices = _choices(node)
        if len(choices) > 1:
            made = [self.reduced(choice, path, depth=depth + 1) for choice in choices]
            return {**kept, "anyOf": made}
        if choices:
            return {**self.reduced(choices[0], path, depth=depth + 1), **kept}
        return {**kept, **self._typed(node, path, depth)}

    def _resolved(
        self, node: JsonObject, path: tuple[str, ...]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """References followed, and all parts of `allOf` made one."""
        while (name := str(node.get("$ref", "")).rpartition("/")[2]) in self._definitions:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            inner = {"type": "object"} if name in path else self._definitions[name]
            node, path = {**inner, **rest}, (*path, name)
        for part in objects_of(node.get("allOf")):
            joined, path = self._resolved(part, path)
            node = _joined(node, joined)
        return node, path

    def _typed(self, node: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        kind = _type_of(node)
        if kind == "object":
            return {"type": kind, **self._members(node, path, depth)}
        if kind == "array":
            return {"type": kind, "items": self.reduced(node.get("items"), path, depth=depth + 1)}
        words = [node["const"]] if "const" in node else _list(node.get("enum"))
        if kind == "string" and words and all(isinstance(word, str) for word in words):
            return {"type": kind, "enum": words}
        return {"type": kind}

    def _members(self, node: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return {"properties": {}} if depth == 0 else {}
        made = {n: self.reduced(v, path, depth=depth + 1) for n, v in properties.items()}
        required = [n for n in _list(node.get("required")) if isinstance(n, str) and n in made]
        return {"properties": made, **({"required": required} if required else {})}


def _choices(node: JsonObject) -> list[JsonObject]:
    """The alternatives of a node, without null; none when it has no alternatives."""
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


def _joined(node: JsonObject, part: JsonObject) -> JsonObject:
    properties = {**object_of(part.get("properties")), **object_of(node.get("properties"))}
    required = [*_list(node.get("required")), *_list(part.get("required"))]
    joined = {**part, **node, "required": required}
    return joined | ({"properties": properties} if properties else {})


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
