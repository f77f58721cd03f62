"""Validates calls in text against the offered tools."""

from __future__ import annotations

import ast
import json
from typing import Any

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.prompt import ToolSpec
from hermes.providers.normalization import clean_json
from hermes.providers.wire.events import list_of

_WORDS = {"true": True, "false": False, "null": None}
_TOO_DEEP = (RecursionError, MemoryError)


class UnreadableValue(ValueError):
    """The text is not a value, or ambiguous."""


def parse_value(text: str) -> JsonValue:
    """Parse a JSON value, or an equivalent Python literal. A duplicate key makes an object
    unreadable."""
    try:
        found = _JSON.decode(text)
    except UnreadableValue:
        raise
    except (ValueError, *_TOO_DEEP):
        found = _literal(text)
    return clean_json(found)


def parse_object(text: str) -> JsonObject:
    found = parse_value(text)
    if not isinstance(found, dict):
        raise UnreadableValue("not an object")
    return found


def literal_of(node: ast.expr) -> JsonValue:
    """Return the value of a syntax tree; JSON's constants count as well as Python's."""
    match node:
        case ast.Constant(value=value):
            if value is None or isinstance(value, bool | int | float | str):
                return value
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [literal_of(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            constants = [key.value for key in keys if isinstance(key, ast.Constant)]
            names = [name for name in constants if isinstance(name, str)]
            if len(names) != len(keys):
                raise UnreadableValue("a key is not a string")
            return _pairs(list(zip(names, map(literal_of, values), strict=True)))
        case _:
            pass
    raise UnreadableValue("not a literal")


def tree_of(text: str) -> ast.expr:
    """Return the expression in the text, as a tree that is never executed."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, *_TOO_DEEP) as error:
        raise UnreadableValue("not an expression") from error


def _literal(text: str) -> JsonValue:
    if text[:1] not in ("{", "[", "'", '"', "(") and text not in ("None", "True", "False"):
        raise UnreadableValue("not a value")
    try:
        return literal_of(tree_of(text))
    except _TOO_DEEP as error:
        raise UnreadableValue("too deep") from error


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnreadableValue("duplicate key")
    return made


def _constant(word: str) -> float:
    """Refuse NaN and Infinity."""
    raise UnreadableValue(f"{word} is not JSON")


# Not strict: models write raw line breaks inside strings.
_JSON = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, strict=False)


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


def fit_to_schema(schema: JsonObject, value: JsonValue, *, text: bool = False) -> JsonValue:
    """Return the value without optional nulls. With `text`, members of an object are text and are
    converted to the types of the schema. Raise SchemaMismatch."""
    return _Check(schema).value(schema, value, text=text, depth=0)


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
        for part in list_of(schema.get("allOf")):
            value = self.value(part, value, text=text, depth=depth + 1)
            text = False
        value = _to_type(schema, value, text=text)
        allowed = schema.get("enum")
        if isinstance(allowed, list) and not any(_same(item, value) for item in allowed):
            raise SchemaMismatch("not one of the allowed values")
        if "const" in schema and not _same(schema["const"], value):
            raise SchemaMismatch("not the one allowed value")
        if isinstance(value, dict):
            return self._object(schema, value, text=text and depth == 0, depth=depth)
        if isinstance(value, list):
            _check_limits(len(value), schema, "minItems", "maxItems")
            items = schema.get("items", True)
            return [self.value(items, item, text=False, depth=depth + 1) for item in value]
        if isinstance(value, str):
            _check_limits(len(value), schema, "minLength", "maxLength")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_limits(value, schema, "minimum", "maximum")
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
    ) -> JsonValue:
        """Fit a value to one of several schemas. Text stays text if that is one of the options."""
        for as_text in (False, True) if text else (False,):
            for option in options:
                try:
                    return self.value(option, value, text=as_text, depth=depth + 1)
                except SchemaMismatch:
                    continue
        raise SchemaMismatch("no option matches")

    def _object(
        self, schema: JsonObject, value: JsonObject, *, text: bool, depth: int
    ) -> JsonObject:
        properties = schema.get("properties")
        known: JsonObject = properties if isinstance(properties, dict) else {}
        needed = set(list_of(schema.get("required")))
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


def _type_names(schema: JsonObject) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(name for name in list_of(kind) if isinstance(name, str))


def _to_type(schema: JsonObject, value: JsonValue, *, text: bool) -> JsonValue:
    kinds = _type_names(schema)
    if text and isinstance(value, str) and kinds and not _has_type(value, kinds):
        value = _convert(value, kinds)
    if kinds and not _has_type(value, kinds):
        raise SchemaMismatch(f"not {' or '.join(kinds)}")
    # 2.0 counts as an integer in a schema.
    whole = "integer" in kinds and isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


def _has_type(value: JsonValue, kinds: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return True
    return any(isinstance(value, _KINDS.get(kind, ())) for kind in kinds)


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
    if not isinstance(schema, dict) or "$ref" in schema:
        return True
    options = [*list_of(schema.get("anyOf")), *list_of(schema.get("oneOf"))]
    kinds = _type_names(schema)
    return "null" in kinds or (not kinds and not options) or any(map(_takes_null, options))


def _check_limits(size: float, schema: JsonObject, least: str, most: str) -> None:
    for name, sign in ((least, 1), (most, -1)):
        limit = schema.get(name)
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            continue
        if sign * size < sign * limit:
            raise SchemaMismatch("out of range")


_PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.")


class OfferedTools:
    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def knows(self, name: str) -> bool:
        return name in self._tools

    def may_start(self, text: str) -> bool:
        """Return whether a tool name may start with this text."""
        return any(name.startswith(text) for name in self._tools)

    def strip_namespace(self, name: str) -> str:
        """Return the name without a namespace prefix that models add."""
        name = name.strip()
        if name in self._tools:
            return name
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
        return name.removeprefix(prefix)

    def arguments(self, name: str, raw: JsonObject, *, typed: bool) -> JsonObject:
        """Return the arguments as the schema requires them; raise SchemaMismatch. Without `typed`,
        text values are converted to the types of the schema."""
        tool = self._tools.get(name)
        if tool is None:
            raise SchemaMismatch("no such tool")
        arguments = fit_to_schema(tool.parameters, raw, text=not typed)
        if not isinstance(arguments, dict):
            raise SchemaMismatch("arguments are not an object")
        return arguments

    def parameters(self, name: str) -> tuple[str, ...]:
        """Return the names of the tool's parameters, in schema order."""
        properties = self._tools[name].parameters.get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()

    def sole_parameter(self, name: str) -> str:
        """Return the only required parameter of the tool, "" if there are none or several."""
        needed = list_of(self._tools[name].parameters.get("required"))
        if len(needed) == 1:
            return str(needed[0])
        known = self.parameters(name)
        return known[0] if not needed and len(known) == 1 else ""
