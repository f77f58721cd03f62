"""Checks values against a JSON Schema; converts text to typed values where a style has no types."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.textcalls.literals import UnreadableValue, parse_value

_MAX_DEPTH = 60
_KINDS = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


class SchemaMismatch(ValueError):
    """The value does not match the schema."""


def fit_to_schema(schema: JsonValue, value: JsonValue, *, text: bool = False) -> JsonValue:
    """The value without optional nulls. With `text`, members of an object are text and are
    converted to the types of the schema. Raises Misfit."""
    root = schema if isinstance(schema, dict) else {}
    return _Check(root).value(schema, value, text=text, depth=0)


class _Check:
    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def value(self, schema: JsonValue, value: JsonValue, *, text: bool, depth: int) -> JsonValue:
        if schema is True or schema == {}:
            return value
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            raise SchemaMismatch("no match")
        if isinstance(reference := schema.get("$ref"), str):
            return self.value(self._resolve(reference), value, text=text, depth=depth + 1)
        for word in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(word), list):
                value = self._any_option(options, value, text=text, depth=depth)
                text = False
        for part in _schemas(schema.get("allOf")):
            value = self.value(part, value, text=text, depth=depth + 1)
            text = False
        value = self._check_type(schema, value, text=text)
        self._check_allowed(schema, value)
        if isinstance(value, dict):
            return self._object(schema, value, text=text and depth == 0, depth=depth)
        if isinstance(value, list):
            return self._array(schema, value, depth=depth)
        _check_size(schema, value)
        return value

    def _resolve(self, reference: str) -> JsonValue:
        if not reference.startswith("#"):
            raise SchemaMismatch("an external reference")
        found: JsonValue = self._root
        for name in reference[1:].split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                raise SchemaMismatch("a broken reference")
            found = found[name]
        return found

    def _any_option(
        self, options: list[JsonValue], value: JsonValue, *, text: bool, depth: int
    ) -> object:
        """Text stays text if that is one of the options."""
        tries = (False, True) if text else (False,)
        for as_text in tries:
            for option in options:
                try:
                    return self.value(option, value, text=as_text, depth=depth + 1)
                except SchemaMismatch:
                    continue
        raise SchemaMismatch("no option matches")

    def _check_type(self, schema: JsonObject, value: JsonValue, *, text: bool) -> JsonValue:
        kinds = _names(schema.get("type"))
        if not kinds or _has_type(value, kinds):
            return _whole(value) if "integer" in kinds else value
        if text and isinstance(value, str):
            made = _convert(value, kinds)
            if _has_type(made, kinds):
                return _whole(made) if "integer" in kinds else made
        raise SchemaMismatch(f"not {' or '.join(kinds)}")

    def _check_allowed(self, schema: JsonObject, value: JsonValue) -> None:
        allowed = schema.get("enum")
        if isinstance(allowed, list) and not any(_same(item, value) for item in allowed):
            raise SchemaMismatch("not one of the allowed values")
        if "const" in schema and not _same(schema["const"], value):
            raise SchemaMismatch("not the one allowed value")

    def _object(
        self, schema: JsonObject, value: JsonObject, *, text: bool, depth: int
    ) -> JsonObject:
        properties = schema.get("properties")
        known: JsonObject = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        needed = set(required) if isinstance(required, list) else set()
        free = schema.get("additionalProperties", properties is None)
        made: JsonObject = {}
        for name, item in value.items():
            if name not in known and free is False and "patternProperties" not in schema:
                raise SchemaMismatch(f"unknown property {name}")
            part = known.get(name, free if isinstance(free, dict) else True)
            if item is None and name not in needed and not _takes_null(part):
                continue
            made[name] = self.value(part, item, text=text, depth=depth + 1)
        if missing := needed - made.keys():
            raise SchemaMismatch(f"missing {', '.join(sorted(map(str, missing)))}")
        return made

    def _array(self, schema: JsonObject, value: list[JsonValue], *, depth: int) -> JsonValue:
        if len(value) < _number(schema, "minItems", 0):
            raise SchemaMismatch("too few items")
        if len(value) > _number(schema, "maxItems", len(value)):
            raise SchemaMismatch("too many items")
        items = schema.get("items", True)
        return [self.value(items, item, text=False, depth=depth + 1) for item in value]


def _schemas(value: JsonValue) -> Iterable[JsonValue]:
    return value if isinstance(value, list) else ()


def _names(kind: JsonValue) -> tuple[str, ...]:
    if isinstance(kind, str):
        return (kind,)
    return tuple(k for k in kind if isinstance(k, str)) if isinstance(kind, list) else ()


def _has_type(value: JsonValue, kinds: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return True
    return any(isinstance(value, _KINDS.get(kind, ())) for kind in kinds)


def _whole(value: JsonValue) -> JsonValue:
    """2.0 counts as an integer in a schema."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _convert(text: str, kinds: tuple[str, ...]) -> JsonValue:
    stripped = text.strip()
    if "boolean" in kinds and stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    try:
        return parse_value(stripped)
    except UnreadableValue:
        return text


def _same(one: JsonValue, other: JsonValue) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _takes_null(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return True
    if "$ref" in schema:
        return True
    options = [*_schemas(schema.get("anyOf")), *_schemas(schema.get("oneOf"))]
    kinds = _names(schema.get("type"))
    return "null" in kinds or (not kinds and not options) or any(map(_takes_null, options))


def _check_size(schema: JsonObject, value: JsonValue) -> None:
    if isinstance(value, str):
        _check_limits(len(value), schema, "minLength", "maxLength")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_limits(value, schema, "minimum", "maximum")


def _check_limits(size: float, schema: JsonObject, least: str, most: str) -> None:
    if size < _number(schema, least, size) or size > _number(schema, most, size):
        raise SchemaMismatch("out of range")


def _number(schema: JsonObject, name: str, default: float) -> float:
    value = schema.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default
