"""Derives a JSON Schema and a lenient argument decoder from a function's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from hermes.codec.coercion import coerce
from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject


class Parameters:
    """The parameters of a function after the first (its context)."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._struct: type[msgspec.Struct] | None = None

    @property
    def struct(self) -> type[msgspec.Struct]:
        if self._struct is None:
            self._struct = _struct_of(self._function)
        return self._struct

    def schema(self) -> JsonObject:
        """Return a JSON Schema object without references, titles or null defaults."""
        (schema,), defs = msgspec.json.schema_components([self.struct])
        whole = defs[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
        properties = whole.get("properties", {})
        return {
            "type": "object",
            "properties": {name: _inline_refs(node, defs) for name, node in properties.items()},
            "required": whole.get("required", []),
        }

    def decode(self, arguments: JsonObject) -> JsonObject:
        """Decode the arguments, correcting simple errors ("5" for 5, a JSON string for an object)
        and dropping nulls and unknown names; raise DecodeError that names the argument that cannot
        be used."""
        values = {name: value for name, value in arguments.items() if value is not None}
        try:
            value = convert(self.struct, values, lenient=True)
        except DecodeError:
            value = convert(self.struct, _decode_quoted(values), lenient=True)
        return {name: getattr(value, name) for name in self.struct.__struct_fields__}


class GivenParameters(Parameters):
    """A schema from outside, such as an MCP server, which checks the arguments itself. Wrong types
    are corrected where the schema says how."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema

    def schema(self) -> JsonObject:
        return self._schema

    def decode(self, arguments: JsonObject) -> JsonObject:
        corrected: JsonObject = coerce(arguments, self._schema)
        return corrected


def _struct_of(function: Callable[..., object]) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        hint = _describe_hint(hints[name])
        if parameter.default is inspect.Parameter.empty:
            fields.append((name, hint))
        else:
            fields.append((name, hint, parameter.default))
    return msgspec.defstruct(function.__name__, fields, kw_only=True)


def _describe_hint(hint: Any) -> Any:
    """Convert `Annotated[str, "text"]` for msgspec: the string becomes the description."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    metas = [msgspec.Meta(description=n) if isinstance(n, str) else n for n in notes]
    return Annotated[(kind, *metas)]


def _inline_refs(node: Any, defs: JsonObject) -> Any:
    if isinstance(node, list):
        return [_inline_refs(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline_refs(defs[node["$ref"].rsplit("/", 1)[1]], defs)
    if "enum" in node and "type" not in node:
        node = {"type": "string", **node}
    if "anyOf" in node:
        kinds = [kind for kind in node["anyOf"] if kind != {"type": "null"}]
        if len(kinds) == 1:
            rest = {key: value for key, value in node.items() if key != "anyOf"}
            return _inline_refs({**kinds[0], **rest}, defs)
    kept = {k: v for k, v in node.items() if k != "title" and not (k == "default" and not v)}
    return {key: _inline_refs(value, defs) for key, value in kept.items()}


def _decode_quoted(arguments: JsonObject) -> JsonObject:
    """Decode strings that hold a JSON array or object: some models quote them."""
    return {name: _maybe_json(value) for name, value in arguments.items()}


def _maybe_json(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value
