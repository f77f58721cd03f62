"""Parses values as models write them: JSON, and Python notation where it means the same."""

from __future__ import annotations

import ast
import json
from typing import Any

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.scrub import clean_json

_WORDS = {"true": True, "false": False, "null": None}
_TOO_DEEP = (RecursionError, MemoryError)


class UnreadableValue(ValueError):
    """The text is not a value, or ambiguous."""


def parse_value(text: str) -> JsonValue:
    """A JSON value, or an equivalent Python literal. A duplicate key makes an object unreadable."""
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
    """The value of a syntax tree; JSON's constants count as well as Python's."""
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
            return _pairs([(_key(k), literal_of(v)) for k, v in zip(keys, values, strict=True)])
        case _:
            pass
    raise UnreadableValue("not a literal")


def tree_of(text: str) -> ast.expr:
    """The expression in the text, as a tree that is never executed."""
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


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise UnreadableValue("a key is not a string")


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnreadableValue("duplicate key")
    return made


def _constant(word: str) -> float:
    raise UnreadableValue(f"{word} is not JSON")


# Not strict: models write raw line breaks inside strings.
_JSON = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, strict=False)
